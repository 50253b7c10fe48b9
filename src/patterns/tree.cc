// Binomial tree arithmetic.
#include "patterns/tree.h"

#include <algorithm>

namespace weft {
namespace {

// Number of ranks that a full subtree of this node would have.
int reach(int node, int size) {
  return node == 0 ? size : node & -node;
}

}  // namespace

int binomial_parent(int node) {
  return node == 0 ? -1 : node & (node - 1);
}

std::vector<int> binomial_children(int node, int size) {
  std::vector<int> children;
  for (int distance = 1; distance < reach(node, size) && distance < size - node; distance *= 2)
    children.push_back(node + distance);
  return children;
}

int binomial_subtree(int node, int size) {
  return std::min(reach(node, size), size - node);
}

}  // namespace weft
