// The steps that an Execution knows, without rounds, messages and meetings.
#include "interpose/alone.h"

namespace weft::interpose {

AloneCall::State AloneCall::go_on(int polls) {
  if (!begun_) {
    if (turn_.memory() && !turn_.may_begin()) return State::held_up;
    begun_ = true;
  }
  const Step* const end_of_steps = schedule_.steps.data() + schedule_.steps.size();
  for (; next_ != end_of_steps; ++next_) {
    if (next_->kind == StepKind::signal) {
      turn_.signal(next_->value);
    } else if (next_->kind == StepKind::wait) {
      const int place = place_of(schedule_.shape, next_->peer);
      const NodeTurn::Seen seen = turn_.look_for(place, next_->value, polls);
      if (seen == NodeTurn::Seen::no) return State::held_up;
      if (seen == NodeTurn::Seen::other_call) return end(false);
    } else {
      operands_.carry_out(*next_);
    }
  }
  return end(true);
}

AloneCall::State AloneCall::end(bool done) {
  if (turn_.memory()) turn_.end(done && schedule_.synchronizing);
  return done ? State::over : State::in_different_calls;
}

bool carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                     const NodeTurn& turn) {
  AloneCall call(schedule, operands, turn);
  AloneCall::State state{};
  progress.drive_in_hand([&](int polls) {
    state = call.go_on(polls);
    return state != AloneCall::State::held_up;
  });
  return state == AloneCall::State::over;
}

}  // namespace weft::interpose
