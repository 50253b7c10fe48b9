// Handles the beginning of MPI_Finalize, and the runtime's end if the library does not call Weft
// for it.
#include "base/first_rank.h"
#include "base/log.h"
#include "runtime/request/incomplete.h"
#include "runtime/runtime.h"
#include "runtime/start/known_calls.h"
#include "runtime/start/start.h"

namespace weft {

void Runtime::nothing_goes_straight() {
  straight_epoch.store(0);
  least_transfer_bytes.store(kNoTransfers);
  begin_epoch();
}

void Runtime::stand_aside() {
  blocking_taken.store(false, std::memory_order_release);
  active_.store(nullptr, std::memory_order_release);
}

// MPICH and its derivatives take no locks once MPI_Finalize has begun, even while the application's
// callbacks run. Open MPI does.
void Runtime::finalize_begins() {
  if (!threads_allowed() || library == Library::openmpi || callers_go_on()) return;
  nothing_goes_straight();
  let_workers_end(*this);
  callers_go_on_.store(true);
  stop_threads();
}

// Open MPI skips the callbacks behind one that has failed.
void Runtime::end_without_library() {
  Runtime* runtime = active();
  if (!runtime) return;
  nothing_goes_straight();
  runtime->stop_threads();
  runtime->stand_aside();
  if (runtime->observing() && is_first_rank())
    say("no summary and no trace: a delete callback of MPI_COMM_SELF has failed in MPI_Finalize, "
        "after which the MPI library calls no other; let it return MPI_SUCCESS");
}

}  // namespace weft
