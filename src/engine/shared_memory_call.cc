// Implements SharedMemoryCall: carries out schedules that use only the node's shared memory.
#include "engine/shared_memory_call.h"

namespace weft {

inline SharedMemoryCall::State SharedMemoryCall::end(bool done) const {
  if (turn_.memory()) done ? turn_.end(schedule_.synchronizing) : turn_.give_up();
  return done ? State::over : State::in_different_calls;
}

SharedMemoryCall::State SharedMemoryCall::progress(int polls) {
  if (!begun_) {
    if (!turn_.may_begin()) return State::blocked;
    begun_ = true;
  }
  for (const Instruction* next = next_;; ++next) {
    if (next->kind == Instruction::Kind::signal) {
      turn_.signal(next->value);
    } else if (next->kind == Instruction::Kind::wait) {
      const NodeBufferUse::Seen seen = turn_.look_for(next->node_rank, next->value, polls);
      if (seen == NodeBufferUse::Seen::yes) continue;
      next_ = next;
      return seen == NodeBufferUse::Seen::no ? State::blocked : end(false);
    } else if (next->kind == Instruction::Kind::end) {
      next_ = next;
      if (schedule_.is_short) turn_.own_next_slot();
      return end(true);
    } else if (next->kind > Instruction::Kind::end) {
      if (next->kind == Instruction::Kind::tell) {
        turn_.tell(next->first_at, next->value);
      } else if (!turn_.is_told(next->first_at, next->value)) {
        next_ = next;
        return end(false);
      }
    } else {
      operands_.carry_out(*next);
    }
  }
}

SharedMemoryCall::State wait_for_others(Progress& progress, SharedMemoryCall& call) {
  SharedMemoryCall::State state{};
  progress.drive_until(
      [&] {
        state = call.progress(1);
        return state != SharedMemoryCall::State::blocked;
      },
      [&] { progress.yield_core(); });
  return state;
}

}  // namespace weft
