// Computes powers of two, and the pairs by which an algorithm for a power of two of ranks handles
// any number of ranks.
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
  return rank == actor(rank / 2) ? rank / 2 : -1;
}

int Fold::rank_at(int position) const {
  return position < extra_ ? actor(position) : position + extra_;
}

}  // namespace weft
