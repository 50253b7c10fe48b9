// Memory for persistent requests: pieces of the communicator's segment on each node, and of further
// segments once that is used up.
#pragma once

#include <memory>
#include <optional>

#include "runtime/trial/internal_collective.h"

namespace weft {

// Returns memory for a persistent request on this rank's node. Collective over the communicator of
// `internal_collective`. buffer_bytes: size of a node buffer. Returns nullptr if this rank is alone
// on its node; nullopt on all ranks if there is no memory, or if the ranks of a node want different
// sizes. The reason is reported once.
std::optional<std::unique_ptr<NodeMemory>> memory_of_request(
    InternalCollective& internal_collective, std::int64_t buffer_bytes);

}  // namespace weft
