// The last part of every start: passes an operation to its executor.
#pragma once

#include <memory>

#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

// Returns whether the progress thread should continue an operation that its start has advanced as
// far as possible.
bool worth_the_thread(Engine engine, const Schedule& schedule);

// Advances the operation as far as possible, then passes it to the executor of `engine`.
void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation);

// Return a schedule or an operation that makes the library's own non-blocking collective on the
// application's communicator.
std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows);
std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows);

// Completes the operation on the calling thread, which advances other operations meanwhile.
void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation);

}  // namespace weft
