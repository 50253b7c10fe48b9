// RankTree: the tree of a node's ranks, as one rank sees it. It is a k-nomial tree in each NUMA
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
  std::vector<int> children;  // children, those with the lowest ranks first
  // The rank from whose shared memory this one copies the result. A domain's first rank has itself
  // here, since it copies from rank 0.
  int source = 0;

  // Returns whether this rank copies rank 0's result into its domain's memory, for the other ranks
  // there.
  bool relays(int rank) const { return source == rank && rank != 0; }
};

RankTree rank_tree(const Domains& domains, int rank, const Tuning& tuning);

}  // namespace weft
