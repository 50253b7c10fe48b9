// Computes binomial and k-nomial trees. The binomial tree is one over relative ranks 0..size-1 with
// root 0. Node v has the children v + 2^k for all 2^k below v's lowest set bit. The subtree of each
// node is a run of consecutive ranks.
#pragma once

#include <vector>

namespace weft {

int binomial_parent(int node);                           // returns -1 for the root
std::vector<int> binomial_children(int node, int size);  // in order, the smallest subtree first
int binomial_subtree(int node, int size);  // number of nodes in the subtree, including `node`

// The k-nomial tree of this radix is like the binomial one, but with digits to base `radix` in
// place of bits: node v has the children v + j * radix^k, 0 < j < radix, for all k below v's lowest
// non-zero digit.
int knomial_parent(int node, int radix);
std::vector<int> knomial_children(int node, int size, int radix);  // in order, the nearest first

// Returns the level of the message between a node other than 0 and its parent: 1 plus the number of
// zero digits after the node's last non-zero digit (base `radix`). Messages of leaves may have
// level 1.
int knomial_level(int node, int radix);

}  // namespace weft
