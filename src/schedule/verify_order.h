// Checks for the verifier that the order of all ranks' steps is safe: no deadlock and no race.
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace weft {

// Returns a message if some rank waits forever, or if two accesses to node memory or to buffers
// that ranks use in place can race, at least one of them a write; empty if neither is so. Messages
// of the schedules must match.
std::string find_disorder(std::span<const Schedule> all_ranks);

}  // namespace weft
