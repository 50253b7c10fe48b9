// Limits the time that the advisor takes to watch buffers by page protection: holds the allowed
// share of the run time, and the time taken so far.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace weft::advise {

// Watching buffers may take this time in ns at once, before the run time has earned any.
inline constexpr std::int64_t kHead = 2'000'000;
// The least time in ns that the kernel takes to deliver a signal.
inline constexpr std::int64_t kSignal = 1'500;
// These costs are included in no measured time, so estimates are used. They were measured on a
// virtual machine with 2 cores (AMD EPYC).
inline constexpr std::int64_t kFault = 3'000;  // ns for a signal, and for the access that raised it
// The time in ns for executing a single instruction in step mode, which in a virtual machine traps
// into the hypervisor.
inline constexpr std::int64_t kStep = 12'000;
// The time in ns that it takes to refill the TLB after the protection of many pages has changed.
inline constexpr std::int64_t kRefill = 3'000;

extern std::atomic<std::int64_t> spent_ns;

// Sets the share of the run time that watching buffers may take. It must be called once, in
// MPI_Init.
void begin_budget(double part);
double budget_part();
std::int64_t allowed_ns();
// Announces a cost that exceeds the present budget and must be spent at once, so that enough is
// saved for it.
void save_for(std::int64_t cost_ns);
void saved_enough();
// Returns the ns of the budget that must be kept at present. It is 0 in a slice of time that is the
// same on all ranks of a node. Ranks that wait for each other thus spend their budgets at the same
// time, and their delays do not add up.
std::int64_t kept_for_slice_ns();
// Returns the CPU time of this thread or process; `whose` is CLOCK_THREAD_CPUTIME_ID or a similar
// clock.
std::int64_t processor_ns(clockid_t whose);
inline bool is_overspent() {
  return spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead;
}

}  // namespace weft::advise
