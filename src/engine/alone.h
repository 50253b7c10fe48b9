// A collective in the node's memory only, carried out by its caller. It is not an Execution, since
// without another thread or a transport it is a single pass over a program, and the time of a short
// call consists of such instructions.
#pragma once

#include "engine/progress.h"
#include "schedule/schedule.h"
#include "shm/node_buffers.h"
#include "transport/operands.h"

namespace weft {

class AloneCall {
 public:
  // schedule: must be one that stands_alone() and is not direct. turn: is needed if it has
  // node_bytes. All must outlive this object.
  AloneCall(const Schedule& schedule, const Operands& operands, const NodeTurn& turn)
      : schedule_(schedule), operands_(operands), turn_(turn), next_(schedule.program.data()) {}

  enum class State : std::uint8_t { blocked, over, in_different_calls };
  // Progresses as far as possible without blocking. Must not be called again once over. polls: how
  // often to look for another rank's signal before returning; 0 stops at the first wait.
  State progress(int polls);

  // Restarts from the first step.
  void rewind() {
    next_ = schedule_.program.data();
    begun_ = false;
  }
  // These describe the state for an Execution that takes over.
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

// Completes the call; while it waits, the caller helps other operations.
AloneCall::State wait_for_others(Progress& progress, AloneCall& call);

// Carries out one call. Returns false if the ranks take part in different calls.
inline bool carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                            const NodeTurn& turn) {
  AloneCall call(schedule, operands, turn);
  progress.advance_callers_own();
  AloneCall::State state = call.progress(progress.polls_inline());
  if (state == AloneCall::State::blocked) [[unlikely]]
    state = wait_for_others(progress, call);
  return state == AloneCall::State::over;
}

}  // namespace weft
