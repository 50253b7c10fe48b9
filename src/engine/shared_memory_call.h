// SharedMemoryCall carries out a collective whose schedule uses only the node's shared memory. The
// caller carries it out in one pass, without a transport or another thread. It is separate from
// Execution because instructions dominate the time of such short calls.
#pragma once

#include "engine/progress.h"
#include "schedule/schedule.h"
#include "shm/node_buffers.h"
#include "transport/operands.h"

namespace weft {

class SharedMemoryCall {
 public:
  // schedule: must satisfy needs_no_messages(), and must not use other ranks' buffers in place.
  // turn: the call's use of the node buffers; required if the schedule has node_bytes. All
  // arguments must outlive this object.
  SharedMemoryCall(const Schedule& schedule, const Operands& operands, const NodeBufferUse& turn)
      : schedule_(schedule), operands_(operands), turn_(turn), next_(schedule.program.data()) {}

  enum class State : std::uint8_t { blocked, over, in_different_calls };
  // Progresses as far as possible without blocking. Must not be called after it has returned
  // `over`. polls: how often to look for another rank's signal before returning; 0 returns at the
  // first signal that is missing.
  State progress(int polls);

  // Restarts from the first step.
  void rewind() {
    next_ = schedule_.program.data();
    begun_ = false;
  }
  // Tell how far the call has progressed, for an Execution that takes it over.
  bool begun() const { return begun_; }
  std::uint32_t steps_done() const { return next_->step; }

 private:
  State end(bool done) const;

  const Schedule& schedule_;
  const Operands& operands_;
  const NodeBufferUse& turn_;
  const Instruction* next_;
  bool begun_ = false;
};

// Completes the call. While the caller waits for other ranks, it helps other operations.
SharedMemoryCall::State wait_for_others(Progress& progress, SharedMemoryCall& call);

// Carries out one call. Returns true on success, false if the ranks have called different
// collectives.
inline bool carry_out_in_shared_memory(Progress& progress, const Schedule& schedule,
                                       const Operands& operands, const NodeBufferUse& turn) {
  SharedMemoryCall call(schedule, operands, turn);
  progress.advance_callers_own();
  SharedMemoryCall::State state = call.progress(progress.polls_inline());
  if (state == SharedMemoryCall::State::blocked) [[unlikely]]
    state = wait_for_others(progress, call);
  return state == SharedMemoryCall::State::over;
}

}  // namespace weft
