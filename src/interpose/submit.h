// The last part of every start: an operation goes to what carries it out.
#pragma once

#include <memory>

#include "interpose/runtime.h"

namespace weft::interpose {

// The caller goes on with it as far as it gets; then the executor of `engine` has it.
void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation);

// The caller brings it to its end, and helps others meanwhile.
void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation);

}  // namespace weft::interpose
