// Implements Operation: advances a collective from its first round to completion.
#include "engine/operation.h"

#include <utility>

namespace weft {

// Begins the next batch of the schedule. Returns false if there is none.
bool Operation::next_batch() {
  const Schedule& over = batch_ ? *batch_ : *schedule_;
  if (!over.next_batch) return false;
  rounds_before_ += over.rounds();
  if (batch_)
    *batch_ = over.next_batch(std::move(*batch_));
  else
    batch_ = std::make_unique<Schedule>(over.next_batch(over));
  execution_.continue_with(*batch_);
  return true;
}

inline bool Operation::end(Result<bool>& result) {
  stage_ = Stage::over;
  if (!result) error_ = std::move(result.error());
  return true;
}

// Advances the second and later batches of a schedule. This function is separate from advance()
// since few schedules have several batches. Observers are told only of the first batch.
[[gnu::noinline]] bool Operation::advance_later_batches(bool callers_part) {
  for (;;) {
    auto result = execution_.advance(1, callers_part);
    round_.store(rounds_before_ + execution_.round(), std::memory_order_relaxed);
    if (result && !*result) return false;
    if (!result || !next_batch()) return end(result);
  }
}

bool Operation::advance_to_the_end(bool callers_part) {
  if (stage_ != Stage::first_batch) [[unlikely]]
    return stage_ == Stage::over || advance_later_batches(callers_part);
  auto result = execution_.advance(1, callers_part);
  round_.store(execution_.round(), std::memory_order_relaxed);
  under_way_.store(&execution_.schedule(), std::memory_order_relaxed);
  if (result && !*result) return false;
  if (result && schedule_->next_batch) [[unlikely]] {
    next_batch();
    stage_ = Stage::later_batch;
    return advance_later_batches(callers_part);
  }
  return end(result);
}

void Operation::was_left() {
  stage_ = Stage::over;
  error_ = Error{"its operator never returned"};
  advance();
}

std::optional<Operation::Rest> Operation::rest() const {
  const bool is_program =
      !schedule_->program.empty() && !execution_.may_be_direct() && stage_ != Stage::over;
  if (!is_program) return std::nullopt;
  return Rest{execution_.begun(), execution_.steps_done(), execution_.signals_before()};
}

bool Operation::advance_to_the_end() {
  return advance_to_the_end(true);
}

bool Operation::advance() {
  return advance(true);
}

bool Operation::advance_threads_part() {
  return advance(false);
}

bool Operation::advance(bool callers_part) {
  if (done()) return true;
  if (!advance_to_the_end(callers_part)) return false;
  finished(error_ ? &*error_ : nullptr);
  // Sequentially consistent, since notify_all() must not look for waiters before this store is
  // visible.
  done_.store(1);
  done_.notify_all();
  return true;
}

void Operation::wait_done() const {
  done_.wait(0, std::memory_order_acquire);
}

}  // namespace weft
