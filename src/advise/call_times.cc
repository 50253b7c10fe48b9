#include "advise/call_times.h"

#include <algorithm>

namespace weft::advise {

constinit Pace paces[kCalls];

namespace {

// If the mean duration of a function's calls in ns exceeds this, all of its calls are timed.
constexpr std::int64_t kShort = 4'000;
constexpr std::uint32_t kStride = 16;  // mean number of calls from one timed call to the next

// Returns a random number of calls to leave untimed. With a fixed number, sampling could fall into
// step with a period of the program.
std::int32_t some_stride() {
  static std::uint32_t chance = 0x9e3779b9;
  chance = chance * 1664525 + 1013904223;
  return static_cast<std::int32_t>(chance >> 16 & (2 * kStride - 1));
}

// Lets the next `gap` calls of a function go untimed. Returns how many of its calls were left
// untimed since the last timed one.
std::int32_t begin_gap(Pace& pace, std::int32_t gap) {
  const std::int32_t left = pace.left.exchange(gap, std::memory_order_relaxed);
  const std::int32_t had = pace.gap - std::max(0, left);
  pace.gap = gap;
  return had;
}

}  // namespace

// Adds a timed call. If a call of a usually short function takes long, the next kFirst calls are
// all timed, since they may take long, too.
Counted count_timed(CallTotal& total, CallId id, std::int64_t ns) {
  Pace& pace = paces[static_cast<int>(id)];
  ++total.timed;
  constexpr std::int64_t kLong = 8 * kShort;
  if (ns > kLong) pace.all_until = total.timed + kFirst;
  const bool shortly = total.ns < (total.calls + 1) * kShort;
  const bool sampled = shortly && total.timed >= pace.all_until;
  const std::int64_t calls = 1 + begin_gap(pace, sampled ? some_stride() : 0);
  const auto weight = static_cast<double>(calls), length = static_cast<double>(ns);
  const std::int64_t all = calls * ns;
  total.calls += static_cast<std::uint64_t>(calls);
  total.ns += static_cast<std::uint64_t>(all);
  total.variance_ns2 += weight * (weight - 1) * length * length;
  return {calls, all};
}

void count_rest(CallTotal& total, CallId id) {
  total.calls += static_cast<std::uint64_t>(begin_gap(paces[static_cast<int>(id)], 0));
}

}  // namespace weft::advise
