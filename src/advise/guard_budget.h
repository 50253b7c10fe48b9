// What guarding may cost: a part of the run time, and what it has cost so far.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace weft::advise {

inline constexpr std::int64_t kHead = 2'000'000;  // ns that may be spent before there is a budget
inline constexpr std::int64_t kSignal = 1'500;    // ns that the kernel needs for one, at least
inline constexpr std::int64_t kFault = 2'500;     // the same with the access that raised it
inline constexpr std::int64_t kWake = 5'000;      // to wake the advisor's thread, and to go on

extern std::atomic<std::int64_t> spent_ns;

// Once, in MPI_Init.
void begin_budget(double part);
double budget_part();
std::int64_t allowed_ns();
// So much is to be spent at once, and is not there yet: it is saved for until saved_enough(), as
// nothing else is.
void save_for(std::int64_t cost_ns);
void saved_enough();
// What this thread, or the process, has had of the cores (CLOCK_THREAD_CPUTIME_ID, ...).
std::int64_t processor_ns(clockid_t whose);
inline bool is_overspent() {
  return spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead;
}

}  // namespace weft::advise
