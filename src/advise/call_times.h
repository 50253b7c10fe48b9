// Decides which calls are timed: all that may wait and, of calls that never wait and turn out
// short, about one in sixteen, since two readings of the clock would take as long as the call. An
// untimed call only decrements a counter, without a lock, so that polling stays cheap. The untimed
// calls are added to the totals when the next timed one returns, or when the job ends; the count is
// then exact.
#pragma once

#include <atomic>
#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

enum class Waits : bool { never, perhaps };

constexpr std::uint64_t kFirst = 64;  // of each call that are timed in any case

struct Pace {
  std::atomic<std::int32_t> left{0};  // calls until one is timed; not above 0: this one
  std::int32_t gap = 0;               // what it was set to
  std::uint64_t all_until = kFirst;   // so many are timed without a gap
};
extern constinit Pace paces[kCalls];

// Must be called once for each call. Returns whether that call is timed.
inline bool is_timed(CallId id, Waits waits) {
  return waits == Waits::perhaps ||
         paces[static_cast<int>(id)].left.fetch_sub(1, std::memory_order_relaxed) <= 0;
}

// The calls that a timed call stands for, itself included, and their estimated time.
struct Counted {
  std::int64_t calls, ns;
};
// Both functions need the recorder's lock.
Counted count_timed(CallTotal& total, CallId id, std::int64_t ns);
// Adds the calls since the last timed one.
void count_rest(CallTotal& total, CallId id);

}  // namespace weft::advise
