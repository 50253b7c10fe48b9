// The memory of persistent requests: pieces of the communicator's segment on each node, and of
// further segments once that is used up.
#pragma once

#include <memory>
#include <optional>

#include "runtime/trial/internal_collective.h"

namespace weft {

// Collective over the communicator of `internal collective`. buffer_bytes: 0 if this rank is alone
// on its node, which then has none. Returns nothing on all ranks if there is no memory, or if the
// ranks of a node want different sizes; the reason is reported once.
std::optional<std::unique_ptr<NodeMemory>> memory_of_request(
    InternalCollective& internal_collective, std::int64_t buffer_bytes);

}  // namespace weft
