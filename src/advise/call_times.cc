#include "advise/call_times.h"

#include <atomic>

namespace weft::advise {
namespace {

constexpr std::uint64_t kFirst = 64;    // of each call that are timed in any case
constexpr std::int64_t kShort = 4'000;  // ns
constexpr std::uint32_t kStride = 16;   // on the average

struct Pace {
  std::atomic<std::uint32_t> left{0};  // calls until one is timed
  std::uint32_t stands_for = 0;        // calls since the last that was
  std::uint64_t all_until = kFirst;    // so many are timed without a gap
};
constinit Pace paces[kCalls];

// Never in step with the program's own period.
std::uint32_t some_stride() {
  static std::uint32_t chance = 0x9e3779b9;
  chance = chance * 1664525 + 1013904223;
  return chance >> 16 & (2 * kStride - 1);
}

}  // namespace

bool is_timed(CallId id, Waits waits) {
  return waits == Waits::perhaps ||
         paces[static_cast<int>(id)].left.load(std::memory_order_relaxed) == 0;
}

// A call that takes long after all is followed by some that are all timed: what comes next may take
// as long.
std::int64_t count_timed(CallTotal& total, CallId id, std::int64_t ns) {
  Pace& pace = paces[static_cast<int>(id)];
  const double weight = 1.0 + pace.stands_for;
  const auto length = static_cast<double>(ns);
  pace.stands_for = 0;
  ++total.calls;
  ++total.timed;
  const auto all = static_cast<std::int64_t>(weight * length);
  total.ns += static_cast<std::uint64_t>(all);
  total.variance_ns2 += weight * (weight - 1) * length * length;
  constexpr std::int64_t kLong = 8 * kShort;
  if (ns > kLong) pace.all_until = total.timed + kFirst;
  const bool shortly = static_cast<std::int64_t>(total.ns / total.calls) < kShort;
  const std::uint32_t gap = shortly && total.timed >= pace.all_until ? some_stride() : 0;
  pace.left.store(gap, std::memory_order_relaxed);
  return all;
}

void count_untimed(CallTotal& total, CallId id) {
  Pace& pace = paces[static_cast<int>(id)];
  ++total.calls;
  ++pace.stands_for;
  const std::uint32_t left = pace.left.load(std::memory_order_relaxed);
  if (left > 0) pace.left.store(left - 1, std::memory_order_relaxed);
}

}  // namespace weft::advise
