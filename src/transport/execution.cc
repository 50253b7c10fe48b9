// Runs a schedule's rounds: start every step of a round, wait for what it posted, go on.
#include "transport/transport.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

bool plain(const Shape& shape, const Operand& operand) {
  return layout_of(shape, operand.unit).plain;
}

bool moves_bytes(const Shape& shape, const Step& step) {
  return plain(shape, step.first) && plain(shape, step.second);
}

}  // namespace

Result<bool> Execution::advance(int polls) {
  if (!begun_ && !begins()) return false;
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
  if (turn_ && turn_->memory()) turn_->end(schedule_->synchronizing);
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
      if (!comes(step, polls)) return false;
    } else if (step.kind == StepKind::signal) {
      turn_->signal(step.value);
    } else if (!operands_ || !carry_out(step)) {
      if (auto started = transport_->start(step); !started) return started;
    }
  }
  return true;
}

bool Execution::comes(const Step& wait, int polls) const {
  for (; polls > 0; --polls)
    if (turn_->has_signalled(wait.peer, wait.value)) return true;
  return false;
}

// False: the transport must.
bool Execution::carry_out(const Step& step) const {
  const Shape& shape = schedule_->shape;
  if (step.kind == StepKind::reduce && operands_->reduce) {
    operands_->reduce(operands_->address(step.first.at), operands_->address(step.second.at),
                      operands_->address(step.into), step.first.count);
    return true;
  }
  if (step.kind != StepKind::copy || !moves_bytes(shape, step)) return false;
  std::memmove(operands_->address(step.second.at), operands_->address(step.first.at),
               static_cast<std::size_t>(payload_bytes(shape, step.first)));
  return true;
}

bool stands_alone(const Schedule& schedule, bool has_kernel) {
  return std::all_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    if (step.kind == StepKind::reduce) return has_kernel;
    if (step.kind == StepKind::copy) return moves_bytes(schedule.shape, step);
    return is_node(step.kind);
  });
}

}  // namespace weft
