// Bcast down a k-nomial tree of radix 4: a rank sends to up to three children per level, so there
// are log4(p) levels for p ranks. There are fewer levels than in a binomial tree, but more messages
// at each. It suits short messages if each level waits long until its ranks make progress. Wilkins
// et al., IEEE CLUSTER 2023 (k-nomial)
#include <ranges>

#include "coll/build_functions.h"
#include "coll/split_tree.h"
#include "patterns/ring.h"
#include "patterns/tree.h"

namespace weft {

void bcast_knomial(Builder& b) {
  const Shape& s = b.shape();
  const Operand data = incoming(s, 0);
  const int node = ring_at(s.rank, -s.root, s.size);
  SplitTree split(b, kKnomialRadix);
  split.down(node);
  if (node != 0) {
    b.recv(ring_at(s.root, knomial_parent(node, kKnomialRadix), s.size), data);
    b.end_round();
  }
  for (int child : std::views::reverse(knomial_children(node, s.size, kKnomialRadix))) {
    split.down(child);
    b.send(ring_at(s.root, child, s.size), data);
  }
}

}  // namespace weft
