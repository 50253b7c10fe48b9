// Computes parents, children and subtrees of binomial and k-nomial trees.
#include "patterns/tree.h"

#include <algorithm>
#include <cstdint>

namespace weft {
namespace {

// Returns how many consecutive node numbers the subtree of this node would have in a complete
// binomial tree. In a tree of `size` nodes it may have fewer.
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

int knomial_parent(int node, int radix) {
  if (node == 0) return -1;
  int power = 1;
  while (node / power % radix == 0) power *= radix;
  return node - node / power % radix * power;
}

int knomial_level(int node, int radix) {
  int level = 1;
  for (; node % radix == 0; node /= radix) ++level;
  return level;
}

std::vector<int> knomial_children(int node, int size, int radix) {
  std::vector<int> children;
  for (std::int64_t power = 1; power < size - node && node / power % radix == 0; power *= radix)
    for (std::int64_t child = node + power;
         child < std::min<std::int64_t>(node + radix * power, size); child += power)
      children.push_back(static_cast<int>(child));
  return children;
}

}  // namespace weft
