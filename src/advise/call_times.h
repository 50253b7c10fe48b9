// Which calls are timed: all that may wait; of those that never do and turn out short about one in
// sixteen, since two readings of the clock would take as long as the call.
// Calls that are not timed only count down to the next that is, without a lock, so that polling
// costs little. Their number is added when that one ends, or the job: it is exact then.
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

// Once for each call: whether it is timed.
inline bool is_timed(CallId id, Waits waits) {
  return waits == Waits::perhaps ||
         paces[static_cast<int>(id)].left.fetch_sub(1, std::memory_order_relaxed) <= 0;
}

// Of a call that is timed, and of those before it that it stands for.
struct Counted {
  std::int64_t calls, ns;
};
// Both with the recorder's lock held.
Counted count_timed(CallTotal& total, CallId id, std::int64_t ns);
// Those after the last one that was timed.
void count_rest(CallTotal& total, CallId id);

}  // namespace weft::advise
