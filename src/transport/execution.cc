// Runs a schedule's rounds: start every step of a round, wait for what it posted, go on.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

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
  const bool has_window = turn_ && turn_->memory();
  if (!begun_ && has_window && !turn_->may_begin()) return false;
  begun_ = true;
  const State state = go_on(polls);
  if (state == State::held_up) return false;
  if (has_window) turn_->end(state == State::over && schedule_->synchronizing);
  if (state == State::failed) return std::move(*error_);
  declined_ = state == State::declined;
  return true;
}

Execution::State Execution::go_on(int polls) {
  for (const std::uint32_t rounds = schedule_->rounds(); round_ < rounds; ++round_) {
    if (!round_started_) {
      if (const State state = start_round(polls); state != State::over)
        return state == State::held_up ? bring_messages_forward() : state;
      round_started_ = true;
    }
    if (transport_) {
      const auto done = transport_->test();
      if (!done) return fail(done.error());
      if (!*done) return State::held_up;
    }
    round_started_ = false;
  }
  return State::over;
}

// Of a round that a wait holds up.
Execution::State Execution::bring_messages_forward() {
  if (schedule_->most_posted == 0) return State::held_up;
  const auto tested = transport_->test();
  return tested ? State::held_up : fail(tested.error());
}

Execution::State Execution::start_round(int polls) {
  const std::uint32_t end = schedule_->round_ends[round_];
  for (const Step* step = &schedule_->steps[next_step_]; next_step_ < end; ++next_step_, ++step) {
    State state = State::over;
    if (step->kind == StepKind::wait)
      state = look_for_signal(*step, polls);
    else if (step->kind == StepKind::signal)
      turn_->signal(step->value);
    else if (is_node(step->kind))
      state = meet(*step);
    else if (!step->plain || !operands_ || !carry_out(*step))
      state = ask_transport(*step);
    if (state != State::over) return state;
  }
  return State::over;
}

Execution::State Execution::look_for_signal(const Step& wait, int polls) {
  const int place = place_of(schedule_->shape, wait.peer);
  for (;;) {
    const NodeTurn::Seen seen = turn_->look_for(place, wait.value);
    if (seen == NodeTurn::Seen::yes) return State::over;
    if (seen == NodeTurn::Seen::other_call)
      return fail(
          {"rank " + std::to_string(wait.peer) + " has other counts, or makes another call"});
    if (--polls <= 0) return State::held_up;
    pause();
  }
}

Execution::State Execution::ask_transport(const Step& step) {
  const auto started = transport_->start(step);
  if (!started) return fail(started.error());
  return *started ? State::over : State::held_up;
}

// Without operands, where other ranks' buffers lie is the transport's business.
Execution::State Execution::meet(const Step& step) {
  PeerBuffers* const peers = operands_ ? operands_->peers : nullptr;
  if (!peers) return State::over;
  if (step.kind == StepKind::find)
    return peers->find(step.peer, turn_->memory()) ? State::over : State::declined;
  peers->show(schedule_->shape.rank, turn_->memory());
  return State::over;
}

Execution::State Execution::fail(Error error) {
  error_ = std::move(error);
  return State::failed;
}

// Of a step on plain data. False: the transport must.
bool Execution::carry_out(const Step& step) const {
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
