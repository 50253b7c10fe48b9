// Decides which calls are timed: all that may wait, and about one in sixteen of those that never
// wait and turn out short, since two readings of the clock would take as long as the call. An
// untimed call only decrements a counter, without a lock, so polling stays cheap. The untimed calls
// are added to the totals when the next timed one returns, or when the job ends; the count is then
// exact.
#pragma once

#include <atomic>
#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

enum class Waits : bool { never, perhaps };

constexpr std::uint64_t kFirst = 64;  // number of a function's first calls that are all timed

struct Pace {
  // Calls until the next timed one; 0 or less: this call is timed.
  std::atomic<std::int32_t> left{0};
  std::int32_t gap = 0;              // the value to which `left` was set last
  std::uint64_t all_until = kFirst;  // number of calls of the function up to which each is timed
};
extern constinit Pace paces[kCalls];

// Must be called once for each call of the application. Returns whether that call is timed.
inline bool is_timed(CallId id, Waits waits) {
  return waits == Waits::perhaps ||
         paces[static_cast<int>(id)].left.fetch_sub(1, std::memory_order_relaxed) <= 0;
}

// The calls that a timed call stands for, itself included, and their estimated time.
struct Counted {
  std::int64_t calls, ns;
};
// Adds a timed call that took `ns` to the total. Returns the calls for which it stands. This
// function and count_rest() need the recorder's lock.
Counted count_timed(CallTotal& total, CallId id, std::int64_t ns);
// Adds the untimed calls since the last timed one to the total.
void count_rest(CallTotal& total, CallId id);

}  // namespace weft::advise
