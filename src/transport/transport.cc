// Implements Execution, which runs a schedule's rounds: it starts every step of a round, waits for
// the posted ones, and continues.
#include "transport/transport.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weft {
// Advances the schedule, as declared in transport.h. When the operation is over, successful or not,
// it also ends the operation's use of the node's shared memory.
Result<bool> Execution::advance(int polls, bool callers_part) {
  const bool has_node_buffer = turn_ && turn_->memory();
  if (!begun_ && has_node_buffer && !turn_->may_begin()) return false;
  if (!begun_) begin();
  State state = progress(polls, callers_part);
  if (state == State::declined && otherwise_) {
    turn_->looked(false);
    signals_before_ = 1;  // the abandoned schedule has signalled once, to agree on the buffers
    turn_to_otherwise();
    state = progress(polls, callers_part);
  }
  if (state == State::blocked) return false;
  if (state == State::over && otherwise_) turn_->looked(true);
  // ranks_differ_ is true if a rank takes part in another call or has other counts; ranks that wait
  // for this one must then fail, too. A rank whose operator has thrown fails alone, and the others
  // may complete.
  if (has_node_buffer && ranks_differ_)
    turn_->give_up();
  else if (has_node_buffer)
    turn_->end(state == State::over && schedule_->synchronizing);
  if (state == State::failed) return std::move(*error_);
  declined_ = state == State::declined;
  return true;
}

void Execution::try_first(const Schedule& direct) {
  otherwise_ = schedule_;
  schedule_ = &direct;
}

void Execution::skip(std::uint32_t steps) {
  begun_ = true;
  next_step_ = steps;
  while (round_ < schedule_->rounds() && schedule_->round_ends[round_] <= steps) ++round_;
}

void Execution::begin() {
  begun_ = true;
  if (otherwise_ && !turn_->worth_looking()) turn_to_otherwise();
}

void Execution::turn_to_otherwise() {
  schedule_ = std::exchange(otherwise_, nullptr);
  next_step_ = round_ = 0;
}

Execution::State Execution::progress(int polls, bool callers_part) {
  for (const std::uint32_t rounds = schedule_->rounds(); round_ < rounds; ++round_) {
    if (!callers_part && round_ >= schedule_->left_from_round) return State::blocked;
    if (!round_started_) {
      if (const State state = start_round(polls); state != State::over)
        return state == State::blocked ? bring_messages_forward() : state;
      round_started_ = true;
    }
    if (transport_) {
      const auto done = transport_->test();
      if (!done) return fail(done.error());
      if (!*done) return State::blocked;
    }
    round_started_ = false;
  }
  return State::over;
}

// Progresses the messages of a round while one of its steps waits for another rank's counter in
// shared memory. Returns State::failed if a message fails, otherwise State::blocked.
Execution::State Execution::bring_messages_forward() {
  if (schedule_->most_posted == 0) return State::blocked;
  const auto tested = transport_->test();
  return tested ? State::blocked : fail(tested.error());
}

Execution::State Execution::start_round(int polls) {
  const std::uint32_t end = schedule_->round_ends[round_];
  for (const Step* step = &schedule_->steps[next_step_]; next_step_ < end; ++next_step_, ++step) {
    State state = State::over;
    if (step->kind == StepKind::wait)
      state = look_for_signal(*step, polls);
    else if (step->kind == StepKind::signal)
      turn_->signal(signals_before_ + step->value);
    else if (is_node(step->kind))
      state = carry_out_in_node(*step);
    else if (!step->plain || !operands_ || !operands_->carry_out(*step))
      state = ask_transport(*step);
    if (state != State::over) return state;
  }
  return State::over;
}

Execution::State Execution::look_for_signal(const Step& wait, int polls) {
  const int node_rank = node_rank_of(schedule_->shape, wait.peer);
  const NodeBufferUse::Seen seen = turn_->look_for(node_rank, signals_before_ + wait.value, polls);
  if (seen == NodeBufferUse::Seen::yes) return State::over;
  if (seen == NodeBufferUse::Seen::no) return State::blocked;
  ranks_differ_ = true;
  return fail({"rank " + std::to_string(wait.peer) + " has other counts, or makes another call"});
}

Execution::State Execution::carry_out_in_node(const Step& step) {
  if (step.kind == StepKind::tell) {
    turn_->tell(step.first.at.offset, step.value);
    return State::over;
  }
  if (step.kind != StepKind::check) return meet(step);
  if (turn_->is_told(step.first.at.offset, step.value)) return State::over;
  ranks_differ_ = true;
  return fail({"rank " + std::to_string(step.peer) + " sends another length than is expected"});
}

Execution::State Execution::ask_transport(const Step& step) {
  const auto started = transport_->start(step);
  if (!started) return fail(started.error());
  return *started ? State::over : State::blocked;
}

// Carries out a step by which ranks publish their buffers, find those of others, or agree that all
// can access them. Does nothing without PeerBuffers, since the transport then carries out the step.
Execution::State Execution::meet(const Step& step) {
  PeerBuffers* const peers = shown_ ? shown_->peers : nullptr;
  if (!peers) return State::over;
  if (step.kind == StepKind::find)
    return peers->find(step.peer, *turn_) ? State::over : State::declined;
  if (step.kind == StepKind::agree) return agree(*peers);
  peers->show(schedule_->shape.rank, *turn_);
  return State::over;
}

Execution::State Execution::agree(PeerBuffers& peers) {
  const auto all_reached = peers.agree(*turn_);
  if (!all_reached) return State::blocked;
  return *all_reached ? State::over : State::declined;
}

Execution::State Execution::fail(Error error) {
  error_ = std::move(error);
  return State::failed;
}

bool needs_no_messages(const Schedule& schedule, bool has_kernel) {
  if (schedule.next_batch) return false;
  return std::all_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    if (step.kind == StepKind::reduce) return step.plain && has_kernel;
    return is_node(step.kind) || (step.kind == StepKind::copy && step.plain);
  });
}

}  // namespace weft
