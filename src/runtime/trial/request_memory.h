// The memory of persistent requests: on each node pieces of the communicator's segment, and of
// further ones when that is used up.
#pragma once

#include <memory>
#include <optional>

#include "runtime/trial/meeting.h"

namespace weft {

// Collective over the communicator of `meeting`. window_bytes: 0 where this rank is alone on its
// node, which then has none. No value on all ranks where there is none to be had, or where the
// ranks of a node want different sizes; why is said once.
std::optional<std::unique_ptr<NodeMemory>> memory_of_request(Meeting& meeting,
                                                             std::int64_t window_bytes);

}  // namespace weft
