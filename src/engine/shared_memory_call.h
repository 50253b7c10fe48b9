// SharedMemoryCall: carries out a collective whose schedule uses only the node's shared memory. The
// caller carries it out in one pass, without a transport or another thread. It is separate from
// Execution because the number of instructions determines the time of such short calls.
#pragma once

#include "engine/progress.h"
#include "schedule/schedule.h"
#include "shm/node_buffers.h"
#include "transport/operands.h"

namespace weft {

class SharedMemoryCall {
 public:
  // schedule: needs_no_messages() must be true for it, and it must not use other ranks' buffers in
  // place. turn: the call's use of the node's shared memory, which a schedule with node_bytes
  // needs. All arguments must outlive this object.
  SharedMemoryCall(const Schedule& schedule, const Operands& operands, const NodeBufferUse& turn)
      : schedule_(schedule), operands_(operands), turn_(turn), next_(schedule.program.data()) {}

  enum class State : std::uint8_t { blocked, over, in_different_calls };
  // Progresses as far as possible without blocking. Must not be called after it has returned
  // `over`. polls: how often to read another rank's counter before returning; with 0 it returns at
  // the first wait.
  State progress(int polls);

  // Prepares the schedule to run again from its first step.
  void rewind() {
    next_ = schedule_.program.data();
    begun_ = false;
  }
  // begun() and steps_done() say how far the call has progressed, for an Execution that continues
  // it.
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

// Completes the call, and helps other operations while it waits for other ranks. Returns the state
// in which the call has ended.
SharedMemoryCall::State wait_for_others(Progress& progress, SharedMemoryCall& call);

// Carries out one call from beginning to end. Returns false if the ranks have called different
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
