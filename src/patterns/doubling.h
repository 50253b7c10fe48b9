// Powers of two, and the fold that brings any number of ranks to one.
// Why the pairs are neighbours: partial results then always belong to runs of consecutive ranks,
// which keeps the order of operands for operators that do not commute.
#pragma once

namespace weft {

bool is_power_of_two(int n);
int power_of_two_below(int n);  // the largest that is <= n

// With `extra` ranks more than a power of two, the first 2 * extra ranks form pairs (2i, 2i + 1),
// and the odd one of each acts for both.
class Fold {
 public:
  explicit Fold(int size) : power_(power_of_two_below(size)), extra_(size - power_) {}

  int power() const { return power_; }
  // Position among the ranks that act, -1 for a rank that its partner acts for.
  int position(int rank) const;
  int rank_at(int position) const;
  // The other rank of the pair, -1 outside the pairs.
  int partner(int rank) const { return rank < 2 * extra_ ? rank ^ 1 : -1; }

 private:
  int power_;
  int extra_;
};

}  // namespace weft
