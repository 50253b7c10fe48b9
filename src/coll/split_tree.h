// SplitTree: divides the messages of a tree between the application's thread and the progress
// thread. The levels next to the leaves have the most messages. The application's threads handle
// these inside MPI calls, where all ranks work at the same time; the few cores of the progress
// threads handle the other levels. On the way up, the application's levels come first: the call
// that starts the collective helps with them. On the way down they come last, and are left to the
// call that waits for the collective. Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019,
// section 6
#pragma once

#include "patterns/tree.h"
#include "schedule/builder.h"

namespace weft {

// The radix of the trees in the algorithms named "k-nomial".
inline constexpr int kKnomialRadix = 4;

class SplitTree {
 public:
  explicit SplitTree(Builder& builder, int radix = 2) : builder_(builder), radix_(radix) {}

  // Must be called before the message from `node` to its parent is added to the schedule. Children
  // must precede their parent, the nearest first.
  void up(int node) {
    if (is_callers(node))
      begun_ = true;
    else
      end_of_way_up();
  }
  // Ends the application's part of the way up. Must be called after the last message to the parent,
  // before any other steps.
  void end_of_way_up() {
    if (begun_) builder_.caller_begins();
    begun_ = false;
  }

  // Must be called before the message from the parent of `node` to `node` is added to the schedule.
  // A node must precede its children, the farthest first.
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
