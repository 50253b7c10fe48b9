// The clocks that the budget goes by.
#include "advise/guard_budget.h"

#include <sys/syscall.h>
#include <time.h>

#include <algorithm>

#include "advise/kernel.h"
#include "base/clock.h"

namespace weft::advise {

std::atomic<std::int64_t> spent_ns{0};

namespace {

double budget = 0;
std::int64_t began_ns = 0;
std::int64_t computed_before_ns = 0;

std::int64_t computed_ns() {
  timespec t{};
  kernel::direct(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, reinterpret_cast<long>(&t));
  return t.tv_sec * INT64_C(1'000'000'000) + t.tv_nsec;
}

}  // namespace

void begin_budget(double part) {
  budget = part;
  began_ns = now_ns();
  computed_before_ns = computed_ns();
}

double budget_part() {
  return budget;
}

// A part of the time that has passed; where others use the core too, of what this process had of
// it, since that is what observing takes longer by. It is asked once a millisecond.
std::int64_t allowed_ns() {
  constexpr std::int64_t kFresh = 1'000'000;
  static std::atomic<std::int64_t> asked_ns{0}, had_ns{0};
  const std::int64_t now = now_ns();
  if (now - asked_ns.load(std::memory_order_relaxed) > kFresh) {
    had_ns.store(computed_ns() - computed_before_ns, std::memory_order_relaxed);
    asked_ns.store(now, std::memory_order_relaxed);
  }
  const std::int64_t base = std::min(now - began_ns, had_ns.load(std::memory_order_relaxed));
  return static_cast<std::int64_t>(budget * static_cast<double>(base));
}

}  // namespace weft::advise
