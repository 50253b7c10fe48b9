// Binomial-tree reduce with log2(p) levels for p ranks. A commutative operator uses the tree whose
// root is the root of the call. Any other uses the tree of rank 0, whose subtrees are runs of
// consecutive ranks; rank 0 then sends the result to the root.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include <vector>

#include "coll/accumulator.h"
#include "coll/build_functions.h"
#include "coll/split_tree.h"
#include "patterns/ring.h"
#include "patterns/tree.h"

namespace weft {
namespace {

// Returns on which side of the partial result received data should enter the reduction. Data on the
// lower side do not move the partial result to another buffer, but it must then be copied first if
// it is in the send buffer.
Side cheapest_side(const Shape& shape) {
  return shape.in_place && shape.commutative ? Side::lower : Side::higher;
}

}  // namespace

void reduce_binomial(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const bool is_root = s.rank == s.root;
  const int top = s.commutative ? s.root : 0;
  const int node = ring_at(s.rank, -top, s.size);
  const std::vector<int> children = binomial_children(node, s.size);

  const bool needs_temp = !is_root && !children.empty();
  const Location target = needs_temp ? b.temp(count, Unit::recv) : Location{Buffer::recv, 0};
  Accumulator sum(b, target, std::vector<Side>(children.size(), cheapest_side(s)));
  SplitTree split(b);
  for (int child : children) {
    split.up(child);
    sum.receive(ring_at(top, child, s.size));
    sum.absorb();
  }
  split.up(node);
  if (node != 0)
    b.send(ring_at(top, binomial_parent(node), s.size), sum.value(), count);
  else if (top != s.root)
    b.send(s.root, sum.value(), count);
  else
    sum.finish();
  b.end_round();
  split.end_of_way_up();
  if (is_root && top != s.root) b.recv(top, {Buffer::recv, 0}, count);
}

}  // namespace weft
