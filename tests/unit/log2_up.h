// The steps in which a value can reach n ranks, if each that has it passes it on in every step.
#pragma once

#include <bit>

namespace weft::test {

inline int log2_up(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}

}  // namespace weft::test
