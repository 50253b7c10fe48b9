// Checks a call's arguments by passing them to the MPI library on a communicator that contains only
// this rank. An operator is checked with zero elements, once per thread for each pair of operator
// and datatype.
#include "runtime/call/operator_check.h"

#include <array>
#include <mutex>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/comm/self_communicator.h"
#include "transport/mpi/library_step.h"

namespace weft {

// Returns whether the MPI library accepts the call. If Weft has no communicator with only this
// rank, it returns true: other ranks may have one, and would wait for this rank in Weft's
// collective.
bool library_accepts(const Call& call, bool blocking) {
  // Two threads must not call collectives on one communicator at the same time.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const MPI_Comm self = self_communicator();
  if (self == handles.comm_null) return true;
  if (blocking) return library_blocking(call, self) == MPI_SUCCESS;
  MPI_Request request;
  return library_nonblocking(call, self, &request) == MPI_SUCCESS &&
         library_calls.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

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
  Call call;
  int nothing = 0, result = 0;
  call.form = CallId::Iallreduce;
  call.sendbuf = &nothing;
  call.recvbuf = &result;
  call.recvtype = type;
  call.op = op;
  if (!library_accepts(call, true)) return false;
  known[next++ % known.size()] = {op, type};
  if (count < known.size()) ++count;
  return true;
}

}  // namespace weft
