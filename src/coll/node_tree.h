// NodeTree: the tree of nodes along which data go from the root's node to all others, or the
// reverse, chunk by chunk. A chain forwards each chunk once, but has as many steps as there are
// nodes. A binomial tree has few steps, but its root handles each chunk several times. Long data
// therefore use the chain. Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007 (pipelined chain)
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "patterns/ring.h"
#include "patterns/tree.h"

namespace weft {

struct NodeTree {
  int parent = -1;  // number of the parent node; -1 for the root
  // The child nodes in ascending order, counted from the root's node. The subtree of each is a run
  // of consecutive nodes.
  std::vector<int> children;
};

inline NodeTree tree_of_nodes(int node, int root, int nodes, std::int64_t chunks) {
  const int at = ring_at(node, -root, nodes);
  const auto absolute = [&](int relative) { return ring_at(relative, root, nodes); };
  NodeTree tree;
  const std::int64_t levels = std::bit_width(static_cast<unsigned>(nodes - 1));
  if (nodes - 2 + chunks < levels * chunks) {
    if (at > 0) tree.parent = absolute(at - 1);
    if (at + 1 < nodes) tree.children.push_back(absolute(at + 1));
    return tree;
  }
  if (at > 0) tree.parent = absolute(binomial_parent(at));
  for (int child : binomial_children(at, nodes)) tree.children.push_back(absolute(child));
  return tree;
}

}  // namespace weft
