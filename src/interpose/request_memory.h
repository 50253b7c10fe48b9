// The memory of persistent requests on one node: pieces of the communicator's segment, and of
// further ones when that is used up.
#pragma once

#include <memory>

#include "interpose/meeting.h"

namespace weft::interpose {

// Collective over the communicator of `meeting`. nullptr on all ranks where there is none to be
// had, or where the ranks want different sizes; why is said once.
std::unique_ptr<NodeMemory> memory_of_request(Meeting& meeting, std::int64_t window_bytes);

}  // namespace weft::interpose
