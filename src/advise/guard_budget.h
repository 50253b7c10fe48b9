// What guarding may cost: a part of the run time, and what it has cost so far.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::advise {

inline constexpr std::int64_t kHead = 2'000'000;  // ns that may be spent before there is a budget
inline constexpr std::int64_t kSignal = 1'500;    // ns that the kernel needs for one

extern std::atomic<std::int64_t> spent_ns;

// Once, in MPI_Init.
void begin_budget(double part);
double budget_part();
std::int64_t allowed_ns();
inline bool is_overspent() {
  return spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead;
}

}  // namespace weft::advise
