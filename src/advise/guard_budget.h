// The cost of guards: the allowed share of the run time, and the cost so far.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace weft::advise {

inline constexpr std::int64_t kHead = 2'000'000;  // ns that may be spent before there is a budget
inline constexpr std::int64_t kSignal = 1'500;    // ns that the kernel needs for one, at least
// Costs that no clock shows, as measured on a virtual machine with 2 cores (AMD EPYC).
inline constexpr std::int64_t kFault = 3'000;   // for a signal and the access that raised it
inline constexpr std::int64_t kStep = 12'000;   // for a single step: the host takes part
inline constexpr std::int64_t kRefill = 3'000;  // to learn all pages again, after many have changed

extern std::atomic<std::int64_t> spent_ns;

// Must be called once, in MPI_Init.
void begin_budget(double part);
double budget_part();
std::int64_t allowed_ns();
// Announces a cost that must be spent at once and exceeds the present budget. Nothing else is spent
// until saved_enough() is called.
void save_for(std::int64_t cost_ns);
void saved_enough();
// Returns the CPU time of this thread or process (CLOCK_THREAD_CPUTIME_ID, ...).
std::int64_t processor_ns(clockid_t whose);
inline bool is_overspent() {
  return spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead;
}

}  // namespace weft::advise
