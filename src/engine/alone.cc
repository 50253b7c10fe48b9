// What an Execution does, without rounds, messages and meetings.
#include "engine/alone.h"

namespace weft {

AloneCall::State AloneCall::go_on(int polls) {
  if (!begun_) {
    if (turn_.memory() && !turn_.may_begin()) return State::held_up;
    begun_ = true;
  }
  for (const Instruction* next = next_; next != end_; ++next) {
    if (next->kind == Instruction::Kind::signal) {
      turn_.signal(next->value);
    } else if (next->kind == Instruction::Kind::wait) {
      const NodeTurn::Seen seen = turn_.look_for(next->place, next->value, polls);
      if (seen == NodeTurn::Seen::yes) continue;
      next_ = next;
      return seen == NodeTurn::Seen::no ? State::held_up : end(false);
    } else {
      operands_.carry_out(*next);
    }
  }
  next_ = end_;
  return end(true);
}

AloneCall::State AloneCall::end(bool done) {
  if (turn_.memory()) turn_.end(done && schedule_.synchronizing);
  return done ? State::over : State::in_different_calls;
}

}  // namespace weft
