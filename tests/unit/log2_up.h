// Returns in how many steps a value reaches n ranks if each that has it sends it to one per step.
#pragma once

#include <bit>

namespace weft::test {

inline int log2_up(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}

}  // namespace weft::test
