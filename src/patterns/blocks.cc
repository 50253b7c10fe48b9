// Implements Blocks: computes where each of several nearly equal blocks of a range begins.
#include "patterns/blocks.h"

#include <algorithm>

namespace weft {

std::int64_t Blocks::begin(int index) const {
  const std::int64_t larger = std::min<std::int64_t>(index, total % parts);
  return total / parts * index + larger;
}

std::vector<std::int64_t> Blocks::borders() const {
  std::vector<std::int64_t> all;
  for (int i = 0; i <= parts; ++i) all.push_back(begin(i));
  return all;
}

}  // namespace weft
