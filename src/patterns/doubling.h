// Powers of two, and the fold that brings any number of ranks to one.
// Why the pairs are neighbours: partial results then always belong to runs of consecutive ranks,
// which keeps the order of operands for operators that do not commute.
#pragma once

namespace weft {

bool is_power_of_two(int n);
int power_of_two_below(int n);  // the largest that is <= n

// With `extra` ranks more than a power of two, the first 2 * extra ranks form pairs (2i, 2i + 1),
// and one of each acts for both: `preferred` in its own pair, else the odd one.
class Fold {
 public:
  explicit Fold(int size, int preferred = 1)
      : power_(power_of_two_below(size)), extra_(size - power_), preferred_(preferred) {}

  int power() const { return power_; }
  // Position among the ranks that act, -1 for a rank that its partner acts for.
  int position(int rank) const;
  int rank_at(int position) const;
  // The other rank of the pair, -1 outside the pairs.
  int partner(int rank) const { return rank < 2 * extra_ ? rank ^ 1 : -1; }

 private:
  int actor(int pair) const { return preferred_ / 2 == pair ? preferred_ : 2 * pair + 1; }

  int power_;
  int extra_;
  int preferred_;
};

}  // namespace weft
