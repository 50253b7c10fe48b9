// Powers of two, and the fold of any number of ranks to one. Neighbouring ranks form the folded
// pairs, so that partial results always cover runs of consecutive ranks. This keeps the order of
// operands for non-commutative operators.
#pragma once

namespace weft {

bool is_power_of_two(int n);
int power_of_two_below(int n);  // the largest one that is <= n

// If there are `extra` ranks more than a power of two, the first 2 * extra ranks form pairs (2i, 2i
// + 1). One rank of each pair acts for both: `preferred` in its own pair, otherwise the odd one.
class Fold {
 public:
  explicit Fold(int size, int preferred = 1)
      : power_(power_of_two_below(size)), extra_(size - power_), preferred_(preferred) {}

  int power() const { return power_; }
  // Returns the position among the acting ranks; -1 for a rank whose partner acts for it.
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
