// Checks that all ranks' schedules together can neither deadlock nor race.
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace weft {

// Returns an error message if some rank waits forever, or if two ranks may access the same shared
// memory or user's buffer at the same time and one of them writes; otherwise an empty string. The
// messages of the schedules must match.
std::string find_disorder(std::span<const Schedule> all_ranks);

}  // namespace weft
