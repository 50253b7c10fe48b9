// Transport: carries out those steps of an operation that need more than the memory of this process
// and node, by MPI point-to-point calls or in the simulator. Execution: runs the rounds of a
// schedule. The two are separate so that the logic of rounds exists once, and the simulator tests
// the code that MPI programs run.
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

  // Carries out a copy or reduction, or posts a communication step, without blocking (except
  // library_blocking). Returns false if an earlier operation must make its call first, so that the
  // step must be repeated later; otherwise true.
  virtual Result<bool> start(const Step& step) = 0;
  // Returns whether all steps that were posted since it last returned true have completed. It is
  // also called before all steps of a round are posted, while one of them waits for another rank.
  virtual Result<bool> test() = 0;
};

// DeferredStep: carries out a whole collective of the MPI library at a time of its choice. Without
// it the transport would call the library at once.
class DeferredStep {
 public:
  virtual ~DeferredStep() = default;
  // Begins the collective; returns false if it must be tried again later.
  virtual Result<bool> begin() = 0;
  // Progresses the collective after begin(); returns true once it is complete.
  virtual Result<bool> over() = 0;
};

class Execution {
 public:
  // All arguments must outlive this object. operands: if given, copies and reductions of contiguous
  // data need no transport. transport: nullptr for a schedule that needs none. turn: the
  // operation's use of the node's shared memory, which schedules with node_bytes need.
  Execution(const Schedule& schedule, Transport* transport, const Operands* operands = nullptr,
            const NodeBufferUse* turn = nullptr)
      : schedule_(&schedule),
        transport_(transport),
        operands_(operands),
        shown_(operands),
        turn_(turn) {}

  // Sets a schedule of the same call that uses other ranks' buffers in place (a direct schedule).
  // It is tried first, unless such calls have lately failed. If some buffer is not accessible, the
  // original schedule follows in the same use of the node's shared memory. Must precede advance().
  void try_first(const Schedule& direct);
  // Returns whether the direct schedule was carried out. The operation must have completed.
  bool was_direct() const { return otherwise_ != nullptr; }

  // Progresses as far as possible without blocking. Returns true once the last round has completed.
  // Must not be called again after an error. polls: how often to look for another rank's signal
  // before returning. callers_part: whether to run also the rounds that are left to application
  // threads (left_from_round).
  Result<bool> advance(int polls = 1, bool callers_part = true);

  // Returns whether the schedule ended because some rank's buffers are not accessible. All ranks
  // agree on that before any buffer is used.
  bool declined() const { return declined_; }

  // Makes `transport` carry out all steps but those by which ranks meet in the node's shared
  // memory. Must precede advance(). A direct schedule that is tried first must be declined.
  void leave_all_to(Transport& transport) {
    transport_ = &transport;
    operands_ = nullptr;
  }

  // Makes the first advance() continue after the first `steps` steps, which were carried out
  // elsewhere. The use of the node's shared memory has begun there, too. The schedule must need no
  // transport.
  void skip(std::uint32_t steps);

  // Prepares the schedule to run again from its first round. The last round must have completed.
  void rewind() {
    next_step_ = round_ = 0;
    begun_ = false;
  }
  // Continues with the rounds of `next` in the same use of the node's shared memory. The last round
  // must have completed.
  void continue_with(const Schedule& next) {
    schedule_ = &next;
    next_step_ = round_ = 0;
  }

  const Schedule& schedule() const { return *schedule_; }  // the schedule that is being carried out
  std::uint32_t round() const { return round_; }
  std::uint32_t steps_done() const { return next_step_; }
  bool begun() const { return begun_; }
  // Returns how often this rank had signalled when it abandoned a schedule that uses other ranks'
  // buffers in place; 0 if it has not abandoned one.
  std::uint32_t signals_before() const { return signals_before_; }
  // Returns whether a schedule that uses other ranks' buffers in place is running or may still run.
  bool may_be_direct() const { return otherwise_ != nullptr || schedule_->is_direct; }

 private:
  // State: the result of a step. Private functions return it instead of Result<bool>, which would
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
  const Operands* shown_;  // whose `peers` the steps show, find and agree use; may be nullptr
  const NodeBufferUse* turn_;
  // The original schedule while a direct one is tried first; otherwise nullptr.
  const Schedule* otherwise_ = nullptr;
  // How often an abandoned direct schedule has signalled; counters continue from there.
  std::uint32_t signals_before_ = 0;
  std::uint32_t next_step_ = 0;
  std::uint32_t round_ = 0;
  bool round_started_ = false;
  bool begun_ = false;
  std::optional<Error> error_;
  bool declined_ = false;
  bool ranks_differ_ = false;  // true if another rank has other counts or makes another call
};

// Returns whether the schedule can run without a transport: it uses only memory of this process and
// node, and has a kernel if it reduces. has_kernel: whether Weft has a loop for the call's operator
// and datatype.
bool needs_no_messages(const Schedule& schedule, bool has_kernel);

}  // namespace weft
