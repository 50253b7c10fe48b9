// Deferred calls: the application has started them, but they cannot begin yet, since
// ranks still compare and the variant of an earlier call is unknown. The application has its
// request; the collective begins later, in order.
#pragma once

#include <optional>

#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"

namespace weft {

class PersistentOperation;

class DeferredCall {
 public:
  virtual ~DeferredCall() = default;
  // Begins the call if nothing precedes it; returns false otherwise.
  virtual bool try_to_start() = 0;
};

// The call is deferred, and gets its request. Returns an MPI error code.
int defer(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
          const Answer& answer, MPI_Request* request);
// Does likewise if other calls on the communicator are deferred; no value: none is.
std::optional<int> defer_behind_others(Runtime& runtime, CallId id, const Call& call,
                                       const Answer& answer, MPI_Request* request);
// Does likewise for a duplication; info: none for MPI_Comm_idup. The library copies the attributes
// that exist when it begins.
std::optional<int> defer_duplication(Runtime& runtime, CallId id, MPI_Comm comm,
                                     std::optional<MPI_Info> info, MPI_Comm* made,
                                     MPI_Request* request);
// Does likewise for a start whose operation is the library's own call on the application's
// communicator.
bool defer_start(Runtime& runtime, PersistentOperation& operation);
// Must be called before a call that waits for all ranks: waits until no call is deferred, that is,
// for the other ranks to have started the deferred ones.
void release_deferred(Runtime& runtime, MPI_Comm comm);

}  // namespace weft
