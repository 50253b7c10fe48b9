// Allocates shared memory for persistent requests. It is a piece of the communicator's segment on
// each node or, when that is used up, of another segment.
#pragma once

#include <memory>
#include <optional>

#include "runtime/trial/internal_collective.h"

namespace weft {

// Returns shared memory for a persistent request on this rank's node; collective over the
// communicator of `internal_collective`. buffer_bytes: the size of a node buffer. Returns nullptr
// if this rank is alone on its node. Returns nullopt on all ranks if there is no memory, or if the
// ranks of a node want different sizes; the reason is printed once.
std::optional<std::unique_ptr<NodeMemory>> memory_of_request(
    InternalCollective& internal_collective, std::int64_t buffer_bytes);

}  // namespace weft
