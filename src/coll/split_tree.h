// SplitTree: decides which of a tree's messages are the caller's part (Schedule). The levels with
// the most messages, those next to the leaves, are carried out on the application's cores, where
// all ranks work at the same time; the others on the cores of the progress threads, which are few.
// Towards the root these levels come first, and the call that starts the collective helps with
// them. From the root they come last, and are left to the call that waits for the collective.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6
#pragma once

#include "patterns/tree.h"
#include "schedule/builder.h"

namespace weft {

// The radix of the algorithms named k-nomial.
inline constexpr int kKnomialRadix = 4;

class SplitTree {
 public:
  explicit SplitTree(Builder& builder, int radix = 2) : builder_(builder), radix_(radix) {}

  // Must be called before the message of `node` to its parent is added. Children precede the node,
  // the nearest first.
  void up(int node) {
    if (is_callers(node))
      begun_ = true;
    else
      end_of_way_up();
  }
  // Must be called after the last message to the parent, before any other steps.
  void end_of_way_up() {
    if (begun_) builder_.caller_begins();
    begun_ = false;
  }

  // Must be called before the message to `node` from its parent is added. The node precedes its
  // children, the farthest first.
  void down(int node) {
    if (left_ || !is_callers(node)) return;
    builder_.caller_continues();
    left_ = true;
  }

  bool is_callers(int node) const {
    return node != 0 && knomial_level(node, radix_) <= builder_.tuning().split_levels;
  }

 private:
  Builder& builder_;
  const int radix_;
  bool begun_ = false;
  bool left_ = false;
};

}  // namespace weft
