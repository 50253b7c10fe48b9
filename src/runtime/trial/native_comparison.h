// Measures Weft's collective in the node's shared memory against the MPI library's own. The MPI
// library carries out the call unless Weft is clearly faster. Results are stored in the file of
// plans, for each machine: they depend on the processor, the system and the MPI library. For
// instance, an MPI library that moves long blocks in one copy is faster than two copies on some
// machines only.
#pragma once

#include "runtime/trial/internal_collective.h"
#include "runtime/trial/native_watch.h"
#include "schedule/schedule.h"

namespace weft {

// Says how the MPI library is measured: by its blocking call, or by a non-blocking call and a wait.
enum class LibraryForm : std::uint8_t { blocking, nonblocking };

// The result of a comparison.
struct NativeResult {
  bool is_won = true;  // Weft carries the call out, because it is faster than the library
  // Counts the calls to which the result applies; nullptr if it holds for good.
  NativeWatch* watch = nullptr;
};

// Returns the result for a call, which is equal on all ranks. Collective; waits for all ranks like
// a blocking collective, unless they know the result. schedule: the call's schedule, on a single
// node. bytes: the size of the call or, if no rank knows it, of the longest part of any rank; equal
// on all ranks.
NativeResult native_result(Runtime& runtime, InternalCollective& internal_collective,
                           const Call& call, const Schedule& schedule, Kernel kernel,
                           std::int64_t bytes, LibraryForm form);

// Returns whether the ranks may measure Weft's collective against the MPI library's. Four
// conditions must hold: it is no neighbourhood collective, the user has not chosen an algorithm,
// the MPI library's blocking call may be made, and no variant without a copy is expected. The
// result is equal on all ranks.
bool may_be_compared(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                     Kernel kernel, bool tries_direct);

}  // namespace weft
