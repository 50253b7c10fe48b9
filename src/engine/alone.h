// A collective that stands alone in the node's memory, in the hand of its caller.
// Why not an Execution: no other thread and no transport takes part, so that it is one pass over a
// program. A short call's time is made of such instructions.
#pragma once

#include "engine/progress.h"
#include "schedule/schedule.h"
#include "shm/node_windows.h"
#include "transport/operands.h"

namespace weft {

class AloneCall {
 public:
  // schedule: one that stands_alone(), not a direct one. turn: where it has node_bytes. All must
  // outlive it.
  AloneCall(const Schedule& schedule, const Operands& operands, const NodeTurn& turn)
      : schedule_(schedule),
        operands_(operands),
        turn_(turn),
        next_(schedule.program.data()),
        end_(next_ + schedule.program.size()) {}

  enum class State : std::uint8_t { held_up, over, in_different_calls };
  // As far as possible without blocking; once over, it is not to be called again. polls: how often
  // to look for another rank's signal before giving up for now.
  State go_on(int polls);

  // From the first step on again.
  void rewind() {
    next_ = schedule_.program.data();
    begun_ = false;
  }
  // For an Execution that is to take over.
  bool begun() const { return begun_; }
  std::uint32_t steps_done() const {
    return next_ == end_ ? static_cast<std::uint32_t>(schedule_.steps.size()) : next_->step;
  }

 private:
  State end(bool done);

  const Schedule& schedule_;
  const Operands& operands_;
  const NodeTurn& turn_;
  const Instruction* next_;
  const Instruction* const end_;
  bool begun_ = false;
};

// One to its end: the caller helps whatever else is under way while it waits. False: ranks take
// part in different calls.
inline bool carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                            const NodeTurn& turn) {
  AloneCall call(schedule, operands, turn);
  AloneCall::State state{};
  progress.drive_in_hand([&](int polls) {
    state = call.go_on(polls);
    return state != AloneCall::State::held_up;
  });
  return state == AloneCall::State::over;
}

}  // namespace weft
