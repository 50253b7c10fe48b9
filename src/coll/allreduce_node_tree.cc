// Allreduce in the node's memory along a tree: each rank adds what its children signal to its own
// vector and signals in turn; the signal of rank 0 tells everyone that the result is there, so that
// it is the barrier as well. For short vectors and many ranks: all ranks together reduce (p - 1) n
// bytes, in log(p) steps, and each copies n out, those without children n in. The higher the radix,
// the fewer steps and the more work in each.
// A subtree is a run of consecutive ranks, and children are added in their order, so that the
// result is right for operators that do not commute.
// El Maarouf et al., Combining reduction with synchronization barrier on multi-core processors
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/nothing_to_reduce.h"
#include "patterns/tree.h"

namespace weft {
namespace {

class Subtree {
 public:
  Subtree(Builder& b, const NodeParts& part, int radix)
      : b_(b), part_(part), children_(knomial_children(b.shape().rank, b.shape().size, radix)) {
    if (children_.size() > 1) scratch_ = b.temp(part.count(), Unit::recv);
  }

  // The sum of `own` and of what the children signal, into this rank's slot. A sum may not be
  // written over its lower operand, so that it goes to and fro.
  void reduce(Location own) {
    const Location slot = part_.of(b_.shape().rank);
    if (children_.empty()) b_.copy(own, slot, part_.count());
    Location sum = own;
    for (std::size_t left = children_.size(); left > 0; --left) {
      const int child = children_[children_.size() - left];
      const Location into = left % 2 == 1 ? slot : scratch_;
      part_.wait(child);
      b_.reduce(sum, part_.of(child), into, part_.count());
      sum = into;
    }
  }

 private:
  Builder& b_;
  const NodeParts& part_;
  const std::vector<int> children_;  // lowest first
  Location scratch_;
};

void allreduce_node_tree(Builder& b, int radix) {
  const Shape& s = b.shape();
  const Location result{Buffer::recv, 0};
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  NodeParts part(b, s.recv.count, s.recv.extent);
  Subtree subtree(b, part, radix);
  for (; !part.done(); part.next()) {
    const std::int64_t offset = part.begin() * s.recv.extent;
    subtree.reduce(b.input() + offset);
    part.signal();
    part.wait(0);
    b.copy(part.of(0), result + offset, part.count());
  }
}

}  // namespace

void allreduce_node_tree_2(Builder& b) {
  allreduce_node_tree(b, 2);
}

void allreduce_node_tree_4(Builder& b) {
  allreduce_node_tree(b, 4);
}

}  // namespace weft
