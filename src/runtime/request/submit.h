// Passes a started collective to the thread that carries it out.
#pragma once

#include <memory>

#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

// Returns whether the progress thread should continue a collective that its start call has advanced
// as far as possible.
bool worth_the_thread(Engine engine, const Schedule& schedule);

// Advances the collective as far as possible. If it is then not complete, passes it to the thread
// that carries it out with this engine.
void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation);

// library_schedule() returns a schedule with a single step: the MPI library's own non-blocking
// collective on the application's communicator. library_operation() returns a collective with this
// schedule.
std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows);
std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows);

// Completes the collective on the calling thread. It advances other collectives meanwhile.
void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation);

}  // namespace weft
