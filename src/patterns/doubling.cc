// Powers of two and folding.
#include "patterns/doubling.h"

#include <bit>

namespace weft {

bool is_power_of_two(int n) {
  return std::has_single_bit(static_cast<unsigned>(n));
}

int power_of_two_below(int n) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
}

int Fold::position(int rank) const {
  if (rank >= 2 * extra_) return rank - extra_;
  return rank % 2 == 0 ? -1 : rank / 2;
}

int Fold::rank_at(int position) const {
  return position < extra_ ? 2 * position + 1 : position + extra_;
}

}  // namespace weft
