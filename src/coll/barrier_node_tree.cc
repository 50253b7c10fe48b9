// Tree barrier in the node's shared memory: each rank raises its counter when its children have
// raised theirs, and is released when rank 0 has. It suits many ranks: p ranks take log(p) steps
// with a few counters each, whereas the flat barrier reads p counters on each rank. With NUMA
// domains, only the first rank of each domain reads counters of other domains.
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
