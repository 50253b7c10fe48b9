// Hierarchical allreduce and reduce in rank order, for reproducible results: these are bitwise the
// same for any placement of ranks. A vector crosses the border between two neighbouring nodes once
// in each direction. In a reduce to a root on the first node, it crosses each border only once.
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
