// Decides which MPI calls are timed. Calls that may wait are always timed. Of short calls that
// never wait, such as MPI_Test, only about one in sixteen is timed, since two readings of the clock
// would take as long as the call itself. An untimed call only decrements a counter, without a lock.
// When the next timed call returns, and at the end of the job, the untimed calls before it are
// added to the total, so that the number of calls is exact.
#pragma once

#include <atomic>
#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

enum class Waits : bool { never, perhaps };

// This number of calls of each function are all timed, before sampling starts.
constexpr std::uint64_t kFirst = 64;

struct Pace {
  // The number of calls of this function until the next one is timed. If it is 0 or less, the
  // current call is timed.
  std::atomic<std::int32_t> left{0};
  std::int32_t gap = 0;  // the value to which `left` was last set
  // Sampling starts only after this number of the function's calls have been timed.
  std::uint64_t all_until = kFirst;
};
extern constinit Pace paces[kCalls];

// Returns whether this MPI call of the application is to be timed. It must be called exactly once
// for each call.
inline bool is_timed(CallId id, Waits waits) {
  return waits == Waits::perhaps ||
         paces[static_cast<int>(id)].left.fetch_sub(1, std::memory_order_relaxed) <= 0;
}

// A timed call also stands for the untimed calls of the same function before it. calls: how many
// calls these are together. ns: their estimated total time.
struct Counted {
  std::int64_t calls, ns;
};
// Adds a timed call that took `ns` nanoseconds, and the untimed calls before it, to the total of
// its function. Returns what was added. Recorder::lock() must be held when this function or
// count_rest() is called.
Counted count_timed(CallTotal& total, CallId id, std::int64_t ns);
// Adds the untimed calls since the last timed one to the number of calls.
void count_rest(CallTotal& total, CallId id);

}  // namespace weft::advise
