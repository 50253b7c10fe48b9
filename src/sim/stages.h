// Says which messages of a schedule belong to which level of a binomial tree, and at which step
// another thread takes over if the tree is split between two threads. Level 1, next to the leaves,
// has the most messages. Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace weft::sim {

// Returns whether the messages of level 1 come first, as in reduce and gather. In other collectives
// they come last.
bool goes_up(Kind kind);

// Returns the level of the message between this rank and `peer`, counted from 1 at the leaves.
int level_of(const Shape& shape, int peer);
// Returns the number of messages of each level, indexed by level. Levels are counted from 1, so
// entry 0 is not used.
std::vector<std::int64_t> messages_of_levels(int ranks);

// Returns the index of the first step that the second of the two threads carries out. In a tree
// that goes up, the first thread carries out levels 1 to `split`, on the application's core; in one
// that goes down, it carries out all other levels.
std::uint32_t end_of_first_stage(const Schedule& schedule, int split);

}  // namespace weft::sim
