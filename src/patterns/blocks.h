// Divides a range into nearly equal consecutive blocks, the first ones larger, so that every rank
// computes the same borders from the same two numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

struct Blocks {
  std::int64_t total;
  int parts;

  // Returns the index of the first element of block `index`; begin(parts) is the end of the last
  // block.
  std::int64_t begin(int index) const;
  // Returns the number of elements in blocks from, …, to - 1 together.
  std::int64_t length(int from, int to) const { return begin(to) - begin(from); }
  std::int64_t length(int index) const { return length(index, index + 1); }
  std::vector<std::int64_t> borders() const;  // returns begin(0), begin(1), …, begin(parts)
};

}  // namespace weft
