// Tree allreduce in the node's shared memory: each rank adds its children's vectors to its own and
// signals. When rank 0 signals, the result is complete, and all ranks have entered the collective.
// It suits short vectors and many ranks: with vectors of n bytes, all p ranks together reduce (p -
// 1) n bytes in log(p) steps, each rank copies n out, and leaves also copy n in. A higher radix
// gives fewer steps with more work each. With d NUMA domains the sums cross domain borders d - 1
// times. So does the result, which the first rank of each domain copies into its domain: 2 (d - 1)
// n bytes in all, the minimum. A subtree consists of consecutive ranks, and children are added in
// order, so the result is right for non-commutative operators. El Maarouf et al., Combining
// reduction with synchronization barrier on multi-core processors
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/nothing_to_reduce.h"
#include "coll/rank_tree.h"

namespace weft {
namespace {

// Returns how often the first rank of a domain signals per chunk: once for its sum, and once more
// for the result unless it is rank 0, whose sum is the result.
int signals_of_source(int rank) {
  return rank == 0 ? 1 : 2;
}

class Tree {
 public:
  Tree(Builder& b, const Domains& domains, const NodeChunks& chunk)
      : b_(b),
        domains_(domains),
        chunk_(chunk),
        tree_(rank_tree(domains, b.shape().rank, b.tuning())) {
    if (tree_.children.size() > 1) scratch_ = b.temp(chunk.count(), Unit::recv);
  }

  // Adds the children's vectors to `own`, and puts the sum into shared memory. The sum alternates
  // between two locations, since a reduction must not overwrite its lower operand.
  void reduce(Location own) {
    const Location shown = chunk_.of(b_.shape().rank);
    if (tree_.children.empty()) b_.copy(own, shown, chunk_.count());
    Location sum = own;
    for (std::size_t left = tree_.children.size(); left > 0; --left) {
      const int child = tree_.children[tree_.children.size() - left];
      const Location into = left % 2 == 1 ? shown : scratch_;
      chunk_.wait(child, 1, signals_of(child));
      b_.reduce(sum, chunk_.of(child), into, chunk_.count());
      sum = into;
    }
    b_.signal();
  }

  void take_result(Location result) {
    const int rank = b_.shape().rank, source = tree_.source;
    if (tree_.relays(rank)) {
      chunk_.wait(0, 1, 1);
      b_.copy(chunk_.of(0), chunk_.of(rank), chunk_.count());
      b_.signal();
    }
    chunk_.wait(source, signals_of(source), signals_of(source));
    b_.copy(chunk_.of(source), result, chunk_.count());
  }

 private:
  int signals_of(int rank) const {
    return domains_.local_rank(rank) == 0 ? signals_of_source(rank) : 1;
  }

  Builder& b_;
  const Domains& domains_;
  const NodeChunks& chunk_;
  const RankTree tree_;
  Location scratch_;
};

void allreduce_by_tree(Builder& b, const Domains& domains) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  NodeChunks chunk(b, s.recv.count, s.recv.extent);
  Tree tree(b, domains, chunk);
  for (; !chunk.done(); chunk.next()) {
    const std::int64_t offset = chunk.begin() * s.recv.extent;
    tree.reduce(b.input() + offset);
    tree.take_result(Location{Buffer::recv, offset});
  }
}

}  // namespace

void allreduce_node_tree(Builder& b) {
  allreduce_by_tree(b, Domains::one(b.shape().size));
}

void allreduce_domain_tree(Builder& b) {
  allreduce_by_tree(b, *b.shape().domains);
}

}  // namespace weft
