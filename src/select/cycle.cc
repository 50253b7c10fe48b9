// Finds the shortest cycle that explains how the times between consecutive calls vary.
#include "select/cycle.h"

#include <algorithm>
#include <cstdlib>

#include "select/tried_variants.h"

namespace weft {

bool looks_like_turns(const std::vector<std::int64_t>& periods) {
  if (periods.size() != 4) return false;
  const auto [even_least, even_most] = std::minmax(periods[0], periods[2]);
  const auto [odd_least, odd_most] = std::minmax(periods[1], periods[3]);
  const bool is_steady = odd_most * 2 <= odd_least * 3;
  return is_steady && (even_least * 2 > odd_most * 3 || odd_least * 2 > even_most * 3);
}

bool may_be_cycle(const std::vector<std::int64_t>& periods) {
  if (periods.size() < 2) return false;
  const auto [least, most] = std::minmax_element(periods.begin() + 1, periods.end());
  return *most * 2 > *least * 3;
}

std::vector<std::int64_t> medians_in_cycle(const std::vector<std::int64_t>& periods,
                                           std::uint64_t first_call, std::size_t length) {
  std::vector<std::vector<std::int64_t>> at(length);
  for (std::size_t i = 0; i < periods.size(); ++i)
    at[(first_call + i) % length].push_back(periods[i]);
  std::vector<std::int64_t> medians;
  for (auto& its : at) medians.push_back(median_of(std::move(its)));
  return medians;
}

std::size_t cycle_in(const std::vector<std::int64_t>& periods, std::uint64_t first_call) {
  const std::int64_t median = median_of(periods);
  for (std::size_t length = 2; length <= kLongestCycle && periods.size() >= 3 * length; ++length) {
    const auto medians = medians_in_cycle(periods, first_call, length);
    const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
    if (*most * 2 <= *least * 3) continue;
    std::int64_t left = 0, all = 0;
    for (std::size_t i = 0; i < periods.size(); ++i) {
      // A period longer than the longest median of the cycle is cut off. It is an exception, such
      // as writing a file, that no cycle explains.
      const std::int64_t ns = std::min(periods[i], *most);
      left += std::abs(ns - medians[(first_call + i) % length]);
      all += std::abs(ns - median);
    }
    if (left * 4 <= all) return length;
  }
  return 1;
}

}  // namespace weft
