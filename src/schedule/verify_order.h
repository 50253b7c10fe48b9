// The order in which the steps of all ranks happen, for the verifier.
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace weft {

// Of schedules whose messages match. Empty: none of them waits for ever, and no two accesses to the
// node's memory or to buffers that are shown, one of them a write, could meet in any run.
std::string find_disorder(std::span<const Schedule> all_ranks);

}  // namespace weft
