// How many levels of a tree are the caller's part (coll/split_tree.h), and how long the call that
// starts the collective helps with them. By the model of the split tree, unless the user says.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace weft {

// Of this rank's node: its ranks, and the cores that carry none but their progress threads; 0: the
// threads run beside their ranks.
struct NodeCores {
  int ranks = 1;
  int free = 0;
};

// The S with the least time by the model, for a tree of that arity over all ranks of the shape, of
// which as many as here share a free core on each node, and a computation that takes as long as the
// blocking collective (select/split_model.h).
int best_split(const NodeCores& cores, const Shape& shape, int arity = 2);

// How long the messages of the caller's levels take where messages of the schedule's length are
// slow. Whoever comes later than that is left to the thread.
std::int64_t most_time_at_start_ns(const Schedule& schedule);

}  // namespace weft
