// Handles deferred collectives. The application has started them and holds their requests, but Weft
// cannot start them yet: the ranks are still comparing times, so that the engine and algorithm of
// an earlier call are unknown. They start later, in the application's order.
#pragma once

#include <optional>

#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"

namespace weft {

class PersistentOperation;

class DeferredCall {
 public:
  virtual ~DeferredCall() = default;
  // Tries to start the deferred collective. Returns false if that must be tried again later.
  virtual bool try_to_start() = 0;
};

// Defers the start of the collective, and makes its request. Returns an MPI error code.
int defer(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
          const Answer& answer, MPI_Request* request);
// Defers the start of the collective if others on its communicator are deferred, and returns an MPI
// error code. Otherwise does nothing and returns nullopt.
std::optional<int> defer_behind_others(Runtime& runtime, CallId id, const Call& call,
                                       const Answer& answer, MPI_Request* request);
// Defers an MPI_Comm_idup or MPI_Comm_idup_with_info if collectives on `comm` are deferred, and
// returns an MPI error code. Otherwise does nothing and returns nullopt. info: nullopt for
// MPI_Comm_idup. The new communicator gets the attributes that exist when the duplication really
// starts.
std::optional<int> defer_duplication(Runtime& runtime, CallId id, MPI_Comm comm,
                                     std::optional<MPI_Info> info, MPI_Comm* made,
                                     MPI_Request* request);
// Defers the start of a persistent collective that is the MPI library's own call on the
// application's communicator. Returns false if no collectives are deferred there; it must then be
// started at once.
bool defer_start(Runtime& runtime, PersistentOperation& operation);
// Waits until no collective on the communicator is deferred, that is, until the other ranks have
// started the same collectives. It must be called before a call that waits for all ranks.
void release_deferred(Runtime& runtime, MPI_Comm comm);

}  // namespace weft
