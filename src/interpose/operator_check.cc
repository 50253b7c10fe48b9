// The library's own check of its arguments, on a communicator of Weft's with one rank and for no
// elements; once per thread and pair.
#include "interpose/operator_check.h"

#include <array>
#include <mutex>

#include "interpose/generated/library_calls.h"
#include "interpose/self_communicator.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {

bool operator_fits(MPI_Op op, MPI_Datatype type) {
  struct Pair {
    MPI_Op op;
    MPI_Datatype type;
  };
  static thread_local std::array<Pair, 8> known{};
  static thread_local unsigned next = 0, count = 0;
  if (op == handles.op_null) return false;
  for (unsigned i = 0; i < count; ++i)
    if (known[i].op == op && known[i].type == type) return true;
  static std::mutex one_at_a_time;  // a collective on one communicator
  const std::lock_guard lock(one_at_a_time);
  int nothing = 0, result = 0;
  if (library_calls.Allreduce(&nothing, &result, 0, type, op, self_communicator()) != MPI_SUCCESS)
    return false;
  known[next++ % known.size()] = {op, type};
  if (count < known.size()) ++count;
  return true;
}

}  // namespace weft::interpose
