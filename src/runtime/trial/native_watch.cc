#include "runtime/trial/native_watch.h"

#include <algorithm>

#include "base/clock.h"

namespace weft {

std::int64_t NativeWatch::rest_after(std::int64_t call_ns) const {
  return switches_ ? 2 : std::clamp(kRested_ns / call_ns, kLeastRest, kMostRest);
}

bool NativeWatch::has_memory() {
  if (comparisons_) return true;
  if (const auto memory = take_memory_()) comparisons_.emplace(*memory, ranks_);
  return comparisons_.has_value();
}

NativeWatch::Step NativeWatch::next_step() {
  if (!has_memory()) {  // on all ranks alike
    calls_left_ = INT64_MAX;
    return Step::none;
  }
  calls_left_ = 1;
  if (stage_ == Stage::agreeing) return look();
  stage_ = Stage::timing;
  if (timed_++ < (switches_ ? 1 : kTimed)) return Step::time;
  publish();
  return Step::none;
}

void NativeWatch::took(std::int64_t ns) {
  shortest_ns_ = std::clamp<std::int64_t>(ns, 1, shortest_ns_);
}

void NativeWatch::publish() {
  comparisons_->publish({shortest_ns_, kLongest_ns - shortest_ns_, budget_.elapsed_ns(now_ns()),
                         budget_.spent_ns(), cost_ns_});
  stage_ = Stage::agreeing;
  calls_left_ = switches_ ? 2 : kAgreeing;
}

// Looks for the times of all ranks. If one of them is late, all look again later.
NativeWatch::Step NativeWatch::look() {
  const auto agreed = comparisons_->look();
  if (!agreed) {
    calls_left_ = switches_ ? 2 : kAgreeing;
    return Step::none;
  }
  const std::int64_t least_ns = kLongest_ns - (*agreed)[kLeast];
  const std::int64_t call_ns = by_least_time_ ? least_ns : (*agreed)[kGreatest];
  watch_.look(call_ns);
  stage_ = Stage::resting;
  calls_left_ = rest_after(call_ns);
  timed_ = 0;
  shortest_ns_ = kLongest_ns;
  const bool may_compare =
      budget_.allows((*agreed)[kSpent] + (*agreed)[kCost], (*agreed)[kElapsed]);
  is_in_doubt_ = switches_ || (may_compare && watch_.has_changed());
  return is_in_doubt_ ? Step::compare : Step::none;
}

void NativeWatch::compared(bool has_changed, std::int64_t cost_ns) {
  is_in_doubt_ = false;
  watch_.compared(!has_changed);
  cost_ns_ = cost_ns;
}

}  // namespace weft
