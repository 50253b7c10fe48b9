// SplitTree: which of a tree's messages are the caller's part (Schedule). The levels with the most
// messages, those next to the leaves, go on the application's cores, where all ranks work at once;
// the others on the cores of the progress threads, which are few. Towards the root these levels
// come first, and the call that starts the collective helps with them. From the root on they come
// last, and are left to the call that waits for the collective.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6
#pragma once

#include "patterns/tree.h"
#include "schedule/builder.h"

namespace weft {

// Of the trees that have k-nomial for a name.
inline constexpr int kKnomialRadix = 4;

class SplitTree {
 public:
  explicit SplitTree(Builder& builder, int radix = 2) : builder_(builder), radix_(radix) {}

  // The message of `node` to its parent is about to be added. Children come before the node itself,
  // nearest first.
  void up(int node) {
    if (is_callers(node))
      begun_ = true;
    else
      end_of_way_up();
  }
  // After the last message to the parent, before what else there may be.
  void end_of_way_up() {
    if (begun_) builder_.caller_begins();
    begun_ = false;
  }

  // The message of `node`'s parent to it is about to be added. The node itself comes before its
  // children, and these farthest first.
  void down(int node) {
    if (left_ || !is_callers(node)) return;
    builder_.caller_goes_on();
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
