// The last part of every start: an operation goes to its executor.
#pragma once

#include <memory>

#include "runtime/runtime.h"

namespace weft {

struct Plan;

// The caller advances it as far as possible; then the executor of `engine` has it.
void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation);

// Makes an operation that begins now: it takes its number and its turn on the communicator.
std::shared_ptr<CollectiveOperation> operation_in_order(Runtime& runtime, CallId id,
                                                        const Call& call, const Plan& plan);

// Make the library's own non-blocking collective, on the application's communicator.
std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows);
std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows);

// Completes the operation on the calling thread, which helps others meanwhile.
void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation);

}  // namespace weft
