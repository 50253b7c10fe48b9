// Computes powers of two, and folds any number of ranks to a power of two: in some pairs of
// neighbouring ranks, one rank acts for both. Since the two are neighbours, partial results always
// cover runs of consecutive ranks, which keeps the order of operands for non-commutative operators.
#pragma once

namespace weft {

bool is_power_of_two(int n);
int power_of_two_below(int n);  // returns the largest power of two that is <= n

// Fold: selects the ranks that take part in an algorithm for a power of two of ranks. If there are
// `extra` ranks more than a power of two, the first 2 * extra ranks form pairs (2i, 2i + 1), and
// one rank of each pair acts for both. That is the rank `preferred` in its own pair, and the odd
// rank in every other pair.
class Fold {
 public:
  explicit Fold(int size, int preferred = 1)
      : power_(power_of_two_below(size)), extra_(size - power_), preferred_(preferred) {}

  int power() const { return power_; }
  // Returns the rank's number among the ranks that act, counted from 0; -1 for a rank whose partner
  // acts for it.
  int position(int rank) const;
  int rank_at(int position) const;
  // Returns the other rank of the pair; -1 for a rank without a pair.
  int partner(int rank) const { return rank < 2 * extra_ ? rank ^ 1 : -1; }

 private:
  int actor(int pair) const { return preferred_ / 2 == pair ? preferred_ : 2 * pair + 1; }

  int power_;
  int extra_;
  int preferred_;
};

}  // namespace weft
