// Barrier in the node's memory along a tree: each rank raises its counter when its children have
// raised theirs, and goes on when rank 0 has. In log(p) steps, of which each looks at a few
// counters, where all at once look at p each: for many ranks. By domains, the counters of other
// domains are looked at by the first rank of each only.
// El Maarouf et al., Combining reduction with synchronization barrier on multi-core processors
#include "coll/build_functions.h"
#include "coll/rank_tree.h"

namespace weft {
namespace {

void meet_along_tree(Builder& b, const Domains& domains) {
  const int rank = b.shape().rank;
  if (b.shape().size == 1) return;
  b.synchronizes();
  const RankTree tree = rank_tree(domains, rank, b.tuning());
  for (const int child : tree.children) b.wait(child, 1);
  b.signal();
  if (tree.relays(rank)) {
    b.wait(0, 1);
    b.signal();
  } else if (rank != tree.source) {
    b.wait(tree.source, tree.source == 0 ? 1 : 2);
  }
}

}  // namespace

void barrier_node_tree(Builder& b) {
  meet_along_tree(b, Domains::one(b.shape().size));
}

void barrier_domain_tree(Builder& b) {
  meet_along_tree(b, *b.shape().domains);
}

}  // namespace weft
