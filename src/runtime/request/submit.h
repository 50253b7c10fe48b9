// The last part of every start: an operation goes to its executor.
#pragma once

#include <memory>

#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

// Returns whether the thread is to continue an operation that its start has advanced as far as
// possible.
bool worth_the_thread(Engine engine, const Schedule& schedule);

// The caller advances it as far as possible; then the executor of `engine` has it.
void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation);

// Make the library's own non-blocking collective, on the application's communicator.
std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows);
std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows);

// Completes the operation on the calling thread, which helps others meanwhile.
void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation);

}  // namespace weft
