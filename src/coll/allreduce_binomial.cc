// Allreduce up a binomial tree to rank 0 and down again: 2 log2(p) levels for p ranks, twice those
// of recursive doubling; each message carries the whole vector. But only half as many messages are
// sent at a time. Besides, the work of a tree can be split between the application's cores and
// those of progress threads (coll/split_tree.h). Subtrees are runs of consecutive ranks, so the
// result is right for non-commutative operators. Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include <ranges>
#include <vector>

#include "coll/accumulator.h"
#include "coll/build_functions.h"
#include "coll/nothing_to_reduce.h"
#include "coll/split_tree.h"
#include "patterns/tree.h"

namespace weft {

void allreduce_binomial(Builder& b) {
  if (nothing_to_reduce(b)) return;
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const Location result{Buffer::recv, 0};
  const std::vector<int> children = binomial_children(s.rank, s.size);
  Accumulator sum(b, result, std::vector<Side>(children.size(), Side::higher));
  SplitTree split(b);
  for (int child : children) {
    split.up(child);
    sum.receive(child);
    sum.absorb();
  }
  if (s.rank == 0) {
    sum.finish();
    b.end_round();
    split.end_of_way_up();
  } else {
    split.up(s.rank);
    b.send(binomial_parent(s.rank), sum.value(), count);
    b.end_round();
    split.end_of_way_up();
    split.down(s.rank);
    b.recv(binomial_parent(s.rank), result, count);
    b.end_round();
  }
  for (int child : std::views::reverse(children)) {
    split.down(child);
    b.send(child, result, count);
  }
}

}  // namespace weft
