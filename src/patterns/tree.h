// Computes binomial and k-nomial trees over the relative ranks 0, …, size - 1 with root 0. In the
// binomial tree, node v has the children v + 2^k for all 2^k below v's lowest set bit. The subtree
// of each node is a run of consecutive ranks.
#pragma once

#include <vector>

namespace weft {

int binomial_parent(int node);  // parent of the node; -1 for the root
// Children in ascending order, smallest subtree first.
std::vector<int> binomial_children(int node, int size);
int binomial_subtree(int node, int size);  // number of nodes in the subtree, including `node`

// Returns the parent of the node in the k-nomial tree of this radix; -1 for the root. This tree is
// like the binomial one, with digits to base `radix` in place of bits: node v has the children v +
// j * radix^k, 0 < j < radix, for all k below v's lowest non-zero digit.
int knomial_parent(int node, int radix);
std::vector<int> knomial_children(int node, int size, int radix);  // children in ascending order

// Returns the level of the message between a node other than 0 and its parent, in a k-nomial tree:
// 1 plus the number of zero digits (to base `radix`) behind the node's last non-zero digit. Level 1
// is next to the leaves.
int knomial_level(int node, int radix);

}  // namespace weft
