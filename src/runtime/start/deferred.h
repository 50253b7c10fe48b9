// Deferred calls: the application has started them and has their requests, but they cannot begin
// yet, because ranks are still comparing and the variant of an earlier call is unknown. They begin
// later, in order.
#pragma once

#include <optional>

#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"

namespace weft {

class PersistentOperation;

class DeferredCall {
 public:
  virtual ~DeferredCall() = default;
  // Begins the call and returns true; returns false if it must be tried again later.
  virtual bool try_to_start() = 0;
};

// Defers the call, and makes its request. Returns an MPI error code.
int defer(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
          const Answer& answer, MPI_Request* request);
// Defers the call if other calls on the communicator are deferred, and returns an MPI error code;
// otherwise returns nullopt.
std::optional<int> defer_behind_others(Runtime& runtime, CallId id, const Call& call,
                                       const Answer& answer, MPI_Request* request);
// Defers a duplication of `comm` if calls on it are deferred, and returns an MPI error code;
// otherwise returns nullopt. info: nullopt for MPI_Comm_idup. The library copies the attributes
// that exist when the duplication begins.
std::optional<int> defer_duplication(Runtime& runtime, CallId id, MPI_Comm comm,
                                     std::optional<MPI_Info> info, MPI_Comm* made,
                                     MPI_Request* request);
// Defers a start of a persistent operation that is the library's call on the application's
// communicator. Returns true if the start is deferred; false if no calls are deferred there, so
// that the operation must be started at once.
bool defer_start(Runtime& runtime, PersistentOperation& operation);
// Waits until no call on the communicator is deferred, that is, until the other ranks have started
// the deferred calls. Must be called before a call that waits for all ranks.
void release_deferred(Runtime& runtime, MPI_Comm comm);

}  // namespace weft
