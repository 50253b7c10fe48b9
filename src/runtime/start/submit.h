// The last part of every start: an operation goes to what carries it out.
#pragma once

#include <memory>

#include "runtime/runtime.h"

namespace weft {

struct Plan;

// The caller goes on with it as far as it gets; then the executor of `engine` has it.
void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation);

// One that begins now: its number and its turn on the communicator are those of this moment.
std::shared_ptr<CollectiveOperation> operation_in_order(Runtime& runtime, CallId id,
                                                        const Call& call, const Plan& plan);

// The library's own non-blocking collective, on the application's own communicator.
std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows);
std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows);

// The caller brings it to its end, and helps others meanwhile.
void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation);

}  // namespace weft
