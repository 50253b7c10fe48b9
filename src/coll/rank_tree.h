// The tree along which the ranks of a node meet, as of one rank: a k-nomial tree in each NUMA
// domain, whose first ranks meet along another. A result goes down in two steps, whatever the
// radix: from rank 0 to the first rank of each domain, and from there to the others.
// A subtree is a run of consecutive local ranks, and one across domains a run of domains; where the
// ranks of each domain are consecutive, too, it is a run of ranks.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

struct RankTree {
  int parent = -1;
  std::vector<int> children;  // the lowest subtree first
  int source = 0;             // whose result this rank takes; itself: it has rank 0's, or is rank 0

  // Returns whether the rank takes rank 0's result and shows it to its domain.
  bool relays(int rank) const { return source == rank && rank != 0; }
};

RankTree rank_tree(const Domains& domains, int rank, const Tuning& tuning);

}  // namespace weft
