// Checks the order in which the steps of all ranks happen, for the verifier.
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace weft {

// Requires schedules whose messages match. Returns an empty string if none of them waits for ever
// and no two accesses to the node's memory or to shown buffers, one of them a write, can race.
std::string find_disorder(std::span<const Schedule> all_ranks);

}  // namespace weft
