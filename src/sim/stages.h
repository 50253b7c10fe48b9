// Stages of a tree: which steps of a schedule belong to which level of a binomial tree, and where a
// split tree changes hands. Level 1 has the most messages.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace weft::sim {

// reduce and gather: level 1 comes first. Else it comes last.
bool goes_up(Kind kind);

// Of a message between this rank and `peer`.
int level_of(const Shape& shape, int peer);
// Messages of each level, level 1 at [1].
std::vector<std::int64_t> messages_of_levels(int ranks);

// The steps before it belong to the stage that begins: of a tree that goes up, levels 1 to `split`,
// which the application's core carries out; of one that goes down, all other levels.
std::uint32_t end_of_first_stage(const Schedule& schedule, int split);

}  // namespace weft::sim
