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
      : schedule_(schedule), operands_(operands), turn_(turn), next_(schedule.program.data()) {}

  enum class State : std::uint8_t { held_up, over, in_different_calls };
  // As far as possible without blocking; once over, it is not to be called again. polls: how often
  // to look for another rank's signal before giving up for now; 0: only up to the first wait.
  State go_on(int polls);

  // From the first step on again.
  void rewind() {
    next_ = schedule_.program.data();
    begun_ = false;
  }
  // For an Execution that is to take over.
  bool begun() const { return begun_; }
  std::uint32_t steps_done() const { return next_->step; }

 private:
  State end(bool done) const;

  const Schedule& schedule_;
  const Operands& operands_;
  const NodeTurn& turn_;
  const Instruction* next_;
  bool begun_ = false;
};

// On to its end: the caller helps whatever else is under way while it waits.
AloneCall::State wait_for_others(Progress& progress, AloneCall& call);

// One to its end. False: ranks take part in different calls.
inline bool carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                            const NodeTurn& turn) {
  AloneCall call(schedule, operands, turn);
  progress.go_on_with_callers_own();
  AloneCall::State state = call.go_on(progress.polls_in_hand());
  if (state == AloneCall::State::held_up) [[unlikely]]
    state = wait_for_others(progress, call);
  return state == AloneCall::State::over;
}

}  // namespace weft
