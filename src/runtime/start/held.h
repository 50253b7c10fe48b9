// Held calls: what the application has started, but what cannot begin yet, since ranks still
// compare and the way of an earlier call is not known. The application has its request; the
// collective itself begins later, in its order.
#pragma once

#include <optional>

#include "runtime/start/plans.h"

namespace weft {

class PersistentOperation;

class HeldCall {
 public:
  virtual ~HeldCall() = default;
  // Begins if nothing is in its way; false: something is.
  virtual bool go_on() = 0;
};

// The call is held, and gets its request. plan: nullptr where it is the library's.
int hold(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
         const Plan* plan, MPI_Request* request);
// The same if others on its communicator are; false: none is.
bool hold_behind_others(Runtime& runtime, CallId id, const Call& call, const Plan* plan,
                        MPI_Request* request, int* code);
// The same of the duplication of a communicator; info: none for MPI_Comm_idup. What the library
// copies are the attributes of the moment when it begins.
bool hold_duplication(Runtime& runtime, CallId id, MPI_Comm comm, std::optional<MPI_Info> info,
                      MPI_Comm* made, MPI_Request* request, int* code);
// The same of a start whose operation is the library's own call on the application's communicator.
bool hold_start(Runtime& runtime, PersistentOperation& operation);
// Before a call that waits for all ranks: until none is held. Waits for the other ranks to have
// started the held ones.
void let_held_go(Runtime& runtime, MPI_Comm comm);

// Before collectives of the library's on the shadow of a communicator where engine auto has a
// worker: until that has carried out what it has. Waits as let_held_go() does.
void let_worker_end(Runtime& runtime, const Communicator& communicator);

}  // namespace weft
