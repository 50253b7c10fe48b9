// Cycle: calls of one kind (call class) whose periods, the times from one call to the next, repeat
// in a pattern, such as two reductions in each iteration with different computation after each. A
// call's position in the cycle is its number modulo the cycle's length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

inline constexpr std::size_t kLongestCycle = 8;
// The number of calls that must be watched to find a cycle: each position of the longest one is
// then seen three times.
inline constexpr std::size_t kWatchedForCycle = 3 * kLongestCycle;

// Returns whether the calls may alternate, so that watching more of them is worthwhile: of four
// consecutive calls, the first and third differ from the second and fourth. The first period is not
// used, since it may include the beginning of the program.
bool looks_like_turns(const std::vector<std::int64_t>& periods);
// Returns whether the calls may form a cycle: of their periods without the first, the longest
// exceeds the shortest by at least half.
bool may_be_cycle(const std::vector<std::int64_t>& periods);

// Returns the length of the cycle of these periods; 1 if there is none. The first period belongs to
// call number first_call. A cycle must explain three quarters of the periods' variation.
std::size_t cycle_in(const std::vector<std::int64_t>& periods, std::uint64_t first_call);

// Returns the median of the periods at each position of a cycle of this length.
std::vector<std::int64_t> medians_in_cycle(const std::vector<std::int64_t>& periods,
                                           std::uint64_t first_call, std::size_t length);

}  // namespace weft
