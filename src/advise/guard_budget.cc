// Compares the time that watching buffers has taken with its allowed share of the run time.
#include "advise/guard_budget.h"

#include <sys/syscall.h>
#include <time.h>

#include <algorithm>

#include "advise/kernel.h"
#include "advise/recorder.h"
#include "base/clock.h"

namespace weft::advise {

std::atomic<std::int64_t> spent_ns{0};

namespace {

double budget = 0;
std::int64_t began_ns = 0;
std::int64_t computed_before_ns = 0;
// The unused time for watching buffers may accumulate at least up to this value in ns; wanted_ns
// may allow more.
std::int64_t least_saved_ns = kHead;
std::atomic<std::int64_t> forgone_ns{0}, wanted_ns{0};

}  // namespace

std::int64_t processor_ns(clockid_t whose) {
  timespec t{};
  kernel::direct(SYS_clock_gettime, whose, reinterpret_cast<long>(&t));
  return t.tv_sec * INT64_C(1'000'000'000) + t.tv_nsec;
}

void begin_budget(double part) {
  // Unused time for watching buffers accumulates up to the allowed share of this run time in ns.
  constexpr std::int64_t kSavedFor = 100'000'000;
  // `part` is a share of the program's own time. The elapsed time also contains the time of
  // watching buffers, so the share is converted.
  budget = part < 1 ? part / (1 + part) / 2 : part;
  least_saved_ns = std::max(kHead, static_cast<std::int64_t>(part * kSavedFor));
  began_ns = now_ns();
  computed_before_ns = processor_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double budget_part() {
  return budget;
}

void save_for(std::int64_t cost_ns) {
  std::int64_t wanted = wanted_ns.load(std::memory_order_relaxed);
  while (cost_ns > wanted && !wanted_ns.compare_exchange_weak(wanted, cost_ns)) {
  }
}

void saved_enough() {
  wanted_ns.store(0, std::memory_order_relaxed);
}

// Outside a slice only that is spent which has been saved beyond what accrues between two slices.
// So a program with few calls spends its budget on any of them.
std::int64_t kept_for_slice_ns() {
  constexpr std::int64_t kPeriod = 64'000'000, kSlice = 8'000'000;  // ns
  const std::int64_t now = now_ns();
  if (budget >= 1 || now % kPeriod < kSlice || now - began_ns < kPeriod) return 0;
  return static_cast<std::int64_t>(budget * kPeriod);
}

// Returns the time that guards may have taken so far. It is a share of the elapsed time or, if
// other processes use the core too, of this process's CPU time. The time taken to record calls is
// subtracted first. Each rank spends only half of the budget unless that is unlimited: ranks that
// wait for each other add up their delays. The unspent budget is saved only up to a bound, since
// otherwise a long phase without calls would pay for a short one with many. The clock is read once
// per millisecond.
std::int64_t allowed_ns() {
  constexpr std::int64_t kFresh = 1'000'000;
  static std::atomic<std::int64_t> asked_ns{0}, had_ns{0};
  const std::int64_t now = now_ns();
  const auto allowed = [&] {
    const std::int64_t base = std::min(now - began_ns, had_ns.load(std::memory_order_relaxed));
    const auto part = static_cast<std::int64_t>(budget * static_cast<double>(base));
    return part - recorder.taken_ns() - forgone_ns.load(std::memory_order_relaxed);
  };
  // Only one thread may update the values, since two threads would both subtract the excess of
  // unused time.
  std::int64_t asked = asked_ns.load(std::memory_order_relaxed);
  if (now - asked > kFresh && asked_ns.compare_exchange_strong(asked, now)) {
    had_ns.store(processor_ns(CLOCK_PROCESS_CPUTIME_ID) - computed_before_ns,
                 std::memory_order_relaxed);
    const std::int64_t saved = allowed() - spent_ns.load(std::memory_order_relaxed);
    const std::int64_t most = std::max(least_saved_ns, wanted_ns.load(std::memory_order_relaxed));
    if (saved > most) forgone_ns.fetch_add(saved - most, std::memory_order_relaxed);
  }
  return allowed();
}

}  // namespace weft::advise
