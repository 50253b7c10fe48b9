// Binomial-tree bcast: log2(p) levels for p ranks, in which each message carries all data. Short
// messages to all children are posted at once. Long ones are sent one after the other, largest
// subtree first, since concurrent ones would share the link and all arrive late.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include <ranges>

#include "coll/build_functions.h"
#include "coll/split_tree.h"
#include "patterns/ring.h"
#include "patterns/tree.h"

namespace weft {
namespace {

constexpr std::int64_t kOneByOneFrom_bytes = 64 * 1024;

}  // namespace

void bcast_binomial(Builder& b) {
  const Shape& s = b.shape();
  const Location data{Buffer::recv, 0};
  const int node = ring_at(s.rank, -s.root, s.size);
  SplitTree split(b);
  split.down(node);
  if (node != 0) {
    b.recv(ring_at(s.root, binomial_parent(node), s.size), data, s.recv.count);
    b.end_round();
  }
  for (int child : std::views::reverse(binomial_children(node, s.size))) {
    split.down(child);
    b.send(ring_at(s.root, child, s.size), data, s.recv.count);
    if (s.recv.bytes() >= kOneByOneFrom_bytes) b.end_round();
  }
}

}  // namespace weft
