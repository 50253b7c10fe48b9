// Checks the order of all ranks' steps, for the verifier.
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace weft {

// Returns an empty string if no rank waits forever and no two accesses to node memory or to shown
// buffers, one of them a write, can race. Requires schedules whose messages match.
std::string find_disorder(std::span<const Schedule> all_ranks);

}  // namespace weft
