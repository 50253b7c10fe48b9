// Transport: carries out those steps of an operation that need more than this process's and the
// node's memory (MPI point-to-point, the simulator). Execution: runs one schedule's rounds. They
// are separate so that the rounds' logic exists once, and the simulator tests the code that runs.
#pragma once

#include <optional>

#include "base/result.h"
#include "schedule/schedule.h"
#include "shm/node_buffers.h"
#include "transport/operands.h"

namespace weft {

// Belongs to one operation: knows its buffers, datatypes, operator, communicator and tag. Only one
// thread may call it at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  // Carries out a local step or posts a communication step, without blocking (except
  // library_blocking). Returns false if other operations must come first.
  virtual Result<bool> start(const Step& step) = 0;
  // Returns true once everything posted since the last true has completed. Also called in the
  // middle of a round that a wait blocks.
  virtual Result<bool> test() = 0;
};

// Carries out a whole collective once it may begin, in place of a call of the library's.
class DeferredStep {
 public:
  virtual ~DeferredStep() = default;
  virtual Result<bool> begin() = 0;  // false: not now
  virtual Result<bool> over() = 0;   // brings it forward, once it has begun
};

class Execution {
 public:
  // All arguments must outlive this object. With `operands`, local steps on plain data are done
  // here. transport: nullptr for a schedule that needs none. turn: is needed by schedules with
  // node_bytes.
  Execution(const Schedule& schedule, Transport* transport, const Operands* operands = nullptr,
            const NodeTurn* turn = nullptr)
      : schedule_(&schedule), transport_(transport), operands_(operands), turn_(turn) {}

  // Sets a direct schedule of the same call, which is tried first if the turn says that it is worth
  // it. If it ends at the internal collective, the proper schedule follows in the same turn. Must
  // precede advance().
  void try_first(const Schedule& direct);
  // Returns, once the operation is over, whether the direct schedule was carried out.
  bool was_direct() const { return otherwise_ != nullptr; }

  // Progresses as far as possible without blocking. Returns true once the last round has completed.
  // Must not be called again after an error. polls: how often to look for another rank's signal
  // before returning. callers_part: the rounds left to callers (left_from_round) are carried out,
  // too.
  Result<bool> advance(int polls = 1, bool callers_part = true);

  // Returns whether the schedule ended because some rank's buffers cannot be seen, on all ranks
  // alike and before any was used.
  bool declined() const { return declined_; }

  // Lets the first advance() begin the turn and skip steps that were done elsewhere; the schedule
  // must need no transport.
  void skip(std::uint32_t steps);

  // Restarts from the first round, once the last has completed.
  void rewind() {
    next_step_ = round_ = 0;
    begun_ = false;
  }
  // Continues with the rounds of `next` in the same turn, once the last round has completed.
  void continue_with(const Schedule& next) {
    schedule_ = &next;
    next_step_ = round_ = 0;
  }

  const Schedule& schedule() const { return *schedule_; }  // the one under way
  std::uint32_t round() const { return round_; }
  std::uint32_t steps_done() const { return next_step_; }
  bool begun() const { return begun_; }
  // Returns the signals of a direct schedule that was given up.
  std::uint32_t signals_before() const { return signals_before_; }
  // Returns whether a direct schedule is in progress or may follow.
  bool may_be_direct() const { return otherwise_ != nullptr || schedule_->is_direct; }

 private:
  // This is used in place of a Result, since it makes up most of a short collective's time.
  enum class State : std::uint8_t { blocked, over, declined, failed };

  void begin();
  void turn_to_otherwise();
  State progress(int polls, bool callers_part);
  State start_round(int polls);
  State bring_messages_forward();
  State look_for_signal(const Step& wait, int polls);
  State ask_transport(const Step& step);
  State fail(Error error);
  State meet(const Step& step);
  State agree(PeerBuffers& peers);

  const Schedule* schedule_;
  Transport* transport_;
  const Operands* operands_;
  const NodeTurn* turn_;
  const Schedule* otherwise_ = nullptr;  // if the direct one under way is not to be
  std::uint32_t signals_before_ = 0;     // given by that one: counters continue from there
  std::uint32_t next_step_ = 0;
  std::uint32_t round_ = 0;
  bool round_started_ = false;
  bool begun_ = false;
  std::optional<Error> error_;
  bool declined_ = false;
};

// Returns whether the schedule needs only this process's and the node's memory, and a kernel if it
// reduces: an Execution then needs no transport.
bool stands_alone(const Schedule& schedule, bool has_kernel);

}  // namespace weft
