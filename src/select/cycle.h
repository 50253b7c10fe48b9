// Cycle: calls of one site that come around in times of a pattern, such as two reductions in each
// iteration, with different computation behind each. Every so-manieth of them, by its number, then
// has the same position in the cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

inline constexpr std::size_t kLongestCycle = 8;
// So many calls are to be watched, so that each position is seen three times.
inline constexpr std::size_t kWatchedForCycle = 3 * kLongestCycle;

// Whether it is worth watching for longer. Of four calls one after the other: those at even places
// differ from those at odd ones. The first may have come at the beginning of the program.
bool looks_like_turns(const std::vector<std::int64_t>& periods);
// Or they merely differ by half, but for the first.
bool may_be_cycle(const std::vector<std::int64_t>& periods);

// The length of the cycle that these periods have, the first being that of call number first_call;
// 1: they have none. A cycle must explain three quarters of how much they differ.
std::size_t cycle_in(const std::vector<std::int64_t>& periods, std::uint64_t first_call);

// The median of the periods at each position of the cycle.
std::vector<std::int64_t> medians_in_cycle(const std::vector<std::int64_t>& periods,
                                           std::uint64_t first_call, std::size_t length);

}  // namespace weft
