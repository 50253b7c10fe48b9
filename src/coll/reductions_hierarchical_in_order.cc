// Allreduce and reduce by levels in the order of the ranks, for reproducible results: the bits are
// those of any placing, and over the border between two nodes a vector goes once in each direction,
// or once in all for a reduce to the first of them.
#include "coll/build_functions.h"
#include "coll/nodes_in_order.h"

namespace weft {

void allreduce_hierarchical_in_order(Builder& b) {
  if (b.shape().recv.count == 0) return;
  b.synchronizes();
  NodesInOrder(b, NodesInOrder::Result::for_all).run();
}

void reduce_hierarchical_in_order(Builder& b) {
  if (b.shape().recv.count == 0) return;
  NodesInOrder(b, NodesInOrder::Result::for_the_root).run();
}

}  // namespace weft
