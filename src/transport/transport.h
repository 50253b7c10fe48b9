// Transport: how one operation's steps are carried out that need more than this process's and the
// node's memory (MPI point-to-point, the simulator). Execution: runs one schedule's rounds.
// Why the split: the rounds' logic exists once, and the simulator tests the same code that runs.
#pragma once

#include <optional>

#include "base/result.h"
#include "schedule/schedule.h"
#include "shm/node_windows.h"
#include "transport/operands.h"

namespace weft {

// Belongs to one operation: knows its buffers, datatypes, operator, communicator and tag.
// Never called from two threads at once.
class Transport {
 public:
  virtual ~Transport() = default;

  // Carries out a local step or posts a communication step, without blocking
  // (library_blocking excepted). False: not now, since other operations come first.
  virtual Result<bool> start(const Step& step) = 0;
  // True once everything posted since the last true has completed. Also called in the midst of a
  // round, which is held up by a wait.
  virtual Result<bool> test() = 0;
};

// What carries a whole collective out once it may begin, in place of a call of the library's.
class Later {
 public:
  virtual ~Later() = default;
  virtual Result<bool> begin() = 0;  // false: not now
  virtual Result<bool> over() = 0;   // brings it forward, once it has begun
};

class Execution {
 public:
  // All must outlive it. Local steps on plain data are done right here where `operands` are given.
  // transport: nullptr for a schedule that needs none. turn: of schedules with node_bytes.
  Execution(const Schedule& schedule, Transport* transport, const Operands* operands = nullptr,
            const NodeTurn* turn = nullptr)
      : schedule_(&schedule), transport_(transport), operands_(operands), turn_(turn) {}

  // Before the first advance(): a direct schedule of the same call comes first, where the turn says
  // that it is worth it. If it ends at the meeting, the schedule proper follows in the same turn.
  void try_first(const Schedule& direct);
  // Once over: that was the one carried out.
  bool was_direct() const { return otherwise_ != nullptr; }

  // Goes on as far as possible without blocking; true once the last round has completed.
  // After an error, the operation is over: do not call again. polls: how often to look for another
  // rank's signal before giving up for now.
  // callers_part: what the schedule leaves to callers (left_from_round) is begun, too.
  Result<bool> advance(int polls = 1, bool callers_part = true);

  // It is over because some rank's buffers cannot be seen, on all ranks alike: none has been used.
  bool declined() const { return declined_; }

  // In its first advance() the turn may begin and this many steps have been done elsewhere, of a
  // schedule that needs no transport.
  void skip(std::uint32_t steps);

  // From the first round on again, once the last has completed.
  void rewind() {
    next_step_ = round_ = 0;
    begun_ = false;
  }
  // Once the last round has completed: those of `next` follow, in the same turn.
  void go_on_with(const Schedule& next) {
    schedule_ = &next;
    next_step_ = round_ = 0;
  }

  const Schedule& schedule() const { return *schedule_; }  // the one under way
  std::uint32_t round() const { return round_; }
  std::uint32_t steps_done() const { return next_step_; }
  bool begun() const { return begun_; }
  // What a direct schedule that was not to be has given.
  std::uint32_t signals_before() const { return signals_before_; }
  // A direct schedule is under way, or may yet be.
  bool may_be_direct() const { return otherwise_ != nullptr || schedule_->is_direct; }

 private:
  // Instead of a Result: this is what a short collective's time is made of.
  enum class State : std::uint8_t { held_up, over, declined, failed };

  void begin();
  void turn_to_otherwise();
  State go_on(int polls, bool callers_part);
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
  std::uint32_t signals_before_ = 0;     // given by that one: counters go on from there
  std::uint32_t next_step_ = 0;
  std::uint32_t round_ = 0;
  bool round_started_ = false;
  bool begun_ = false;
  std::optional<Error> error_;
  bool declined_ = false;
};

// It only needs this process's and the node's memory, and a kernel if it reduces: an Execution can
// do without a transport.
bool stands_alone(const Schedule& schedule, bool has_kernel);

}  // namespace weft
