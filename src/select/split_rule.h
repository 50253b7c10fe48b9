// Decides how many levels of a tree the caller carries out (coll/split_tree.h), and for how long
// the starting call helps. It uses the model of the split tree unless the user says otherwise.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace weft {

// The ranks of this node, and its cores that run only progress threads; 0 free cores means that the
// threads share their ranks' cores.
struct NodeCores {
  int ranks = 1;
  int free = 0;
};

// Returns the number of levels for the caller with which the program takes the least time by the
// model (select/split_model.h), for a tree of this arity over all ranks of the shape. The model
// assumes that the other nodes are like this one, and that the program computes for as long as the
// blocking collective takes.
int best_split(const NodeCores& cores, const Shape& shape, int arity = 2);

// Returns the longest time for which the starting call carries out the caller's levels: the time of
// their messages on a slow network. The thread carries out the messages of ranks that start later.
std::int64_t most_time_at_start_ns(const Schedule& schedule);

}  // namespace weft
