// Says which steps of a schedule belong to which level of a binomial tree, and at which step
// another thread takes over a split tree. Level 1 has the most messages.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace weft::sim {

// Returns whether the messages of level 1 come first, as in reduce and gather; otherwise they come
// last.
bool goes_up(Kind kind);

// Returns the level of the message between this rank and `peer`.
int level_of(const Shape& shape, int peer);
// Returns the number of messages of each level, indexed by level (from 1).
std::vector<std::int64_t> messages_of_levels(int ranks);

// Returns the index of the first step after the first stage of a split tree. In a tree that goes
// up, that stage has levels 1 to `split`, which the application's core carries out; in one that
// goes down, it has all other levels.
std::uint32_t end_of_first_stage(const Schedule& schedule, int split);

}  // namespace weft::sim
