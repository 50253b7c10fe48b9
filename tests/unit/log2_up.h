// Returns the number of steps in which a value reaches n ranks, if in each step every rank that has
// it sends it to one more.
#pragma once

#include <bit>

namespace weft::test {

inline int log2_up(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}

}  // namespace weft::test
