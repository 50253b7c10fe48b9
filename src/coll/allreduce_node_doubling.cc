// Allreduce in the node's shared memory by recursive doubling: in each of log(p) steps two ranks
// read each other's partial sums, which have separate memory for each step. Short data travel in
// the ranks' slots, one cache line each. If p is not a power of two, in some pairs of ranks the
// even one first passes its vector to the other one, and takes the result from it at the end. It
// suits short vectors with too many ranks for a single exchange: for vectors of n bytes on p ranks,
// each rank copies n bytes and reduces n log(p). Partial sums cover consecutive ranks, so the
// result is right for non-commutative operators and identical on all ranks. Jocksch, Piccinali,
// shared-memory persistent allreduce (first step to 2^n)
#include <bit>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/nothing_to_reduce.h"
#include "patterns/doubling.h"

namespace weft {
namespace {

class Doubling {
 public:
  explicit Doubling(Builder& b)
      : b_(b),
        s_(b.shape()),
        fold_(s_.size),
        is_folded_(!is_power_of_two(s_.size)),
        steps_(std::bit_width(static_cast<unsigned>(fold_.power())) - 1),
        shows_(steps_ + (is_folded_ ? 1 : 0)),
        chunk_(b, s_.recv.count, shows_ * s_.recv.extent) {}

  void run() {
    for (; !chunk_.done(); chunk_.next()) {
      const std::int64_t offset = chunk_.begin() * s_.recv.extent;
      if (fold_.position(s_.rank) < 0)
        leave_to_the_other(b_.input() + offset, {Buffer::recv, offset});
      else
        double_up(b_.input() + offset, {Buffer::recv, offset});
    }
  }

 private:
  // Returns where in shared memory a rank puts its partial sum after `step` steps, for other ranks
  // to read. A rank that also acts for its partner puts the final result there after the last step.
  Location shown(int rank, int step) const {
    return chunk_.of(rank) + step * chunk_.count() * s_.recv.extent;
  }
  // Returns how often a rank signals per chunk: once if it only passes its vector to a partner,
  // otherwise each time it has written a partial sum.
  int signals_of(int rank) const { return fold_.position(rank) < 0 ? 1 : shows_; }
  void wait(int rank, int step) const { chunk_.wait(rank, step + 1, signals_of(rank)); }

  void leave_to_the_other(Location own, Location result) {
    const int other = fold_.partner(s_.rank);
    b_.copy(own, shown(s_.rank, 0), chunk_.count());
    b_.signal();
    wait(other, steps_);
    b_.copy(shown(other, steps_), result, chunk_.count());
  }

  void double_up(Location own, Location result) {
    show_first(own);
    for (int step = 0; step < steps_; ++step) {
      const int partner = fold_.rank_at(fold_.position(s_.rank) ^ (1 << step));
      wait(partner, step);
      const bool is_last = step + 1 == steps_;
      add(partner, step, is_last ? result : shown(s_.rank, step + 1));
      if (!is_last) b_.signal();
    }
    if (!is_folded_) return;
    if (fold_.partner(s_.rank) >= 0) b_.copy(result, shown(s_.rank, steps_), chunk_.count());
    b_.signal();
  }

  void show_first(Location own) {
    const int folded = fold_.partner(s_.rank);
    if (folded >= 0) {
      wait(folded, 0);
      b_.reduce(shown(folded, 0), own, shown(s_.rank, 0), chunk_.count());
    } else {
      b_.copy(own, shown(s_.rank, 0), chunk_.count());
    }
    b_.signal();
  }

  void add(int partner, int step, Location into) {
    const Location own = shown(s_.rank, step), other = shown(partner, step);
    const bool is_lower = partner < s_.rank;
    b_.reduce(is_lower ? other : own, is_lower ? own : other, into, chunk_.count());
  }

  Builder& b_;
  const Shape& s_;
  const Fold fold_;
  const bool is_folded_;
  const int steps_;
  const int shows_;  // number of partial sums per chunk that an acting rank puts into shared memory
  NodeChunks chunk_;
};

}  // namespace

void allreduce_node_doubling(Builder& b) {
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  Doubling(b).run();
}

}  // namespace weft
