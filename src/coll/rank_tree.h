// RankTree: the tree of a node's ranks, as seen by one rank. It is a k-nomial tree in each NUMA
// domain, and the domains' first ranks form another one. A result goes down in two steps, whatever
// the radix: from rank 0 to the first rank of each domain, and from there to the others. A subtree
// within a domain is a run of consecutive local ranks, and a subtree across domains is a run of
// domains. If the ranks of each domain are consecutive, every subtree is a run of ranks.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

struct RankTree {
  int parent = -1;
  std::vector<int> children;  // children in order, the lowest subtree first
  // The rank from whose memory this one takes the result; itself if it is rank 0 or takes the
  // result directly from rank 0.
  int source = 0;

  // Returns whether the rank takes rank 0's result and puts it into its domain's memory.
  bool relays(int rank) const { return source == rank && rank != 0; }
};

RankTree rank_tree(const Domains& domains, int rank, const Tuning& tuning);

}  // namespace weft
