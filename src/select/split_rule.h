// Decides how many levels of a tree application threads carry out (coll/split_tree.h), and for how
// long the call that starts the collective helps with them. It uses the model of the split tree
// unless the user has set the number.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace weft {

// NodeCores: the number of ranks of this node, and of its cores that run only progress threads.
// With 0 such cores, the threads share their ranks' cores.
struct NodeCores {
  int ranks = 1;
  int free = 0;
};

// Returns the number of tree levels on the application's cores with which the program takes the
// least time by the model (select/split_model.h), for a tree of this arity over all ranks of the
// shape. The model assumes that the other nodes are like this one, and that the program computes
// for as long as the blocking collective takes.
int best_split(const NodeCores& cores, const Shape& shape, int arity = 2);

// Returns how many nanoseconds the call that starts the collective may help with the tree levels on
// the application's cores: the time of their messages on a slow network. The thread carries out the
// messages of ranks that start later.
std::int64_t most_time_at_start_ns(const Schedule& schedule);

}  // namespace weft
