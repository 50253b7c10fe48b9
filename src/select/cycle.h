// Cycle: calls of one call class whose periods (times from one call to the next) repeat in a
// pattern, such as two reductions in each iteration with different computation after each. A call's
// position in the cycle is its number modulo the length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

inline constexpr std::size_t kLongestCycle = 8;
// The number of calls to watch, so that each position of the longest cycle is seen three times.
inline constexpr std::size_t kWatchedForCycle = 3 * kLongestCycle;

// Returns whether the calls may alternate, so that watching them for longer is worthwhile: of four
// consecutive calls, those at even places differ from those at odd ones. The first period is not
// used, since it may include the beginning of the program.
bool looks_like_turns(const std::vector<std::int64_t>& periods);
// Returns whether calls may form a cycle: their periods, except the first, differ by at least half.
bool may_be_cycle(const std::vector<std::int64_t>& periods);

// Returns the length of the cycle of these periods, the first of which belongs to call first_call;
// 1 if there is none. A cycle must explain three quarters of their variation.
std::size_t cycle_in(const std::vector<std::int64_t>& periods, std::uint64_t first_call);

// Returns the median of the periods at each position of the cycle.
std::vector<std::int64_t> medians_in_cycle(const std::vector<std::int64_t>& periods,
                                           std::uint64_t first_call, std::size_t length);

}  // namespace weft
