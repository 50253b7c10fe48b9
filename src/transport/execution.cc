// Runs a schedule's rounds: start every step of a round, wait for what it posted, go on.
#include <algorithm>
#include <cstring>

#include "transport/transport.h"

namespace weft {
namespace {

// Without a pause a waiting core takes the line back and forth: five times as long to see a signal.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// Over, rightly or not, it uses its window no more.
Result<bool> Execution::advance(int polls) {
  if (!begun_ && !begins()) return false;
  auto result = go_on(polls);
  const bool over = !result || *result;
  if (over && turn_ && turn_->memory()) turn_->end(result && schedule_->synchronizing);
  return result;
}

Result<bool> Execution::go_on(int polls) {
  while (round_ < schedule_->rounds()) {
    if (!round_started_) {
      auto started = start_round(polls);
      if (!started || !*started) return started;
      round_started_ = true;
    }
    if (transport_) {
      auto done = transport_->test();
      if (!done || !*done) return done;
    }
    round_started_ = false;
    ++round_;
  }
  return true;
}

bool Execution::begins() {
  begun_ = !turn_ || !turn_->memory() || turn_->may_begin();
  return begun_;
}

Result<bool> Execution::start_round(int polls) {
  const std::uint32_t end = schedule_->round_ends[round_];
  for (; next_step_ < end; ++next_step_) {
    const Step& step = schedule_->steps[next_step_];
    if (step.kind == StepKind::wait) {
      auto came = comes(step, polls);
      if (!came || !*came) return came;
    } else if (step.kind == StepKind::signal) {
      turn_->signal(step.value);
    } else if (!operands_ || !carry_out(step)) {
      if (auto started = transport_->start(step); !started) return started;
    }
  }
  return true;
}

Result<bool> Execution::comes(const Step& wait, int polls) const {
  for (;;) {
    const NodeTurn::Seen seen = turn_->look_for(wait.peer, wait.value);
    if (seen == NodeTurn::Seen::yes) return true;
    if (seen == NodeTurn::Seen::other_call)
      return Error{"rank " + std::to_string(wait.peer) +
                   " has other counts, or makes another call"};
    if (--polls <= 0) return false;
    pause();
  }
}

// False: the transport must.
bool Execution::carry_out(const Step& step) const {
  if (!step.plain) return false;
  const std::byte* first = operands_->address(step.first.at);
  std::byte* second = operands_->address(step.second.at);
  if (step.kind == StepKind::copy)
    std::memmove(second, first, static_cast<std::size_t>(step.bytes));
  else if (operands_->reduce)
    operands_->reduce(first, second, operands_->address(step.into), step.first.count);
  else
    return false;
  return true;
}

bool stands_alone(const Schedule& schedule, bool has_kernel) {
  return std::all_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    if (step.kind == StepKind::reduce) return step.plain && has_kernel;
    return is_node(step.kind) || (step.kind == StepKind::copy && step.plain);
  });
}

}  // namespace weft
