// Transport: carries out those steps of an operation that need more than memory of this process and
// node (MPI point-to-point, or the simulator). Execution: runs the rounds of a schedule. They are
// separate so that the logic of rounds exists once, and the simulator tests the code that runs.
#pragma once

#include <optional>

#include "base/result.h"
#include "schedule/schedule.h"
#include "shm/node_buffers.h"
#include "transport/operands.h"

namespace weft {

// A transport belongs to one operation, whose buffers, datatypes, operator, communicator and tag it
// knows. Only one thread may call it at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  // Carries out a local step or posts a communication step, without blocking (except
  // library_blocking). Returns true if that is done, false if the step must be repeated later,
  // since other operations come first.
  virtual Result<bool> start(const Step& step) = 0;
  // Returns true once everything posted since the last true has completed. Is also called in the
  // middle of a round while a wait step blocks.
  virtual Result<bool> test() = 0;
};

// DeferredStep: carries out a whole collective of the library at a time of its choice, in place of
// a transport that would call the library at once.
class DeferredStep {
 public:
  virtual ~DeferredStep() = default;
  virtual Result<bool> begin() = 0;  // begins the collective, or returns false for a later try
  virtual Result<bool> over() = 0;  // progresses the collective after begin(); returns true once it
                                    // is complete
};

class Execution {
 public:
  // All arguments must outlive this object. operands: if given, local steps on contiguous data need
  // no transport. transport: nullptr for a schedule that needs none. turn: the operation's use of
  // the node buffers; required by schedules with node_bytes.
  Execution(const Schedule& schedule, Transport* transport, const Operands* operands = nullptr,
            const NodeBufferUse* turn = nullptr)
      : schedule_(&schedule), transport_(transport), operands_(operands), turn_(turn) {}

  // Sets a direct schedule of the same call, which uses other ranks' buffers in place. It is tried
  // first unless such calls have lately failed to do so. If some buffer is not accessible, the
  // original schedule follows in the same use of the node buffers. Must precede advance().
  void try_first(const Schedule& direct);
  // Returns, after the operation has completed, whether the direct schedule was carried out.
  bool was_direct() const { return otherwise_ != nullptr; }

  // Progresses as far as possible without blocking. Returns true once the last round has completed.
  // Must not be called again after an error. polls: how often to look for another rank's signal
  // before returning. callers_part: whether to carry out the rounds left to callers
  // (left_from_round), too.
  Result<bool> advance(int polls = 1, bool callers_part = true);

  // Returns whether the schedule ended because some rank's buffers are not accessible. All ranks
  // agree on it before any buffer is used.
  bool declined() const { return declined_; }

  // Makes the first advance() continue after `steps` steps that were done elsewhere, where the use
  // of the node buffers has begun, too. The schedule must need no transport.
  void skip(std::uint32_t steps);

  // Restarts from the first round, after the last one has completed.
  void rewind() {
    next_step_ = round_ = 0;
    begun_ = false;
  }
  // Continues with the rounds of `next` in the same use of the node buffers, after the last round
  // has completed.
  void continue_with(const Schedule& next) {
    schedule_ = &next;
    next_step_ = round_ = 0;
  }

  const Schedule& schedule() const { return *schedule_; }  // the schedule under way
  std::uint32_t round() const { return round_; }
  std::uint32_t steps_done() const { return next_step_; }
  bool begun() const { return begun_; }
  // Returns how many signals this rank had given when it abandoned a schedule that uses other
  // ranks' buffers in place; 0 if it has not abandoned one.
  std::uint32_t signals_before() const { return signals_before_; }
  // Returns whether a schedule that uses other ranks' buffers in place is in progress or may
  // follow.
  bool may_be_direct() const { return otherwise_ != nullptr || schedule_->is_direct; }

 private:
  // The result of a step. It replaces Result<bool> in private functions, since a Result<bool> would
  // take most of the time of a short collective.
  enum class State : std::uint8_t { blocked, over, declined, failed };

  void begin();
  void turn_to_otherwise();
  State progress(int polls, bool callers_part);
  State start_round(int polls);
  State bring_messages_forward();
  State look_for_signal(const Step& wait, int polls);
  State ask_transport(const Step& step);
  State fail(Error error);
  State carry_out_in_node(const Step& step);
  State meet(const Step& step);
  State agree(PeerBuffers& peers);

  const Schedule* schedule_;
  Transport* transport_;
  const Operands* operands_;
  const NodeBufferUse* turn_;
  const Schedule* otherwise_ = nullptr;  // the original schedule, which follows if the direct one
                                         // under way is abandoned; nullptr if none is under way
  std::uint32_t signals_before_ = 0;     // signals given by an abandoned direct schedule; counters
                                         // continue from there
  std::uint32_t next_step_ = 0;
  std::uint32_t round_ = 0;
  bool round_started_ = false;
  bool begun_ = false;
  std::optional<Error> error_;
  bool declined_ = false;
  bool ranks_differ_ = false;  // a rank has other counts, or makes another call
};

// Returns whether an Execution of the schedule needs no transport: it uses only memory of this
// process and node, and has a kernel if it reduces.
bool needs_no_messages(const Schedule& schedule, bool has_kernel);

}  // namespace weft
