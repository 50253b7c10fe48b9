// Operation: a started collective call on this rank, with its schedule and state. The executors
// that advance it know nothing of MPI. The thread that advances the last round calls finished()
// once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/floating_point.h"
#include "base/result.h"
#include "transport/transport.h"

namespace weft {

class Operation {
 public:
  // operands: the operation's buffers. turn: its use of the node's shared memory. Both are passed
  // to Execution, and may be nullptr.
  Operation(std::shared_ptr<const Schedule> schedule, Transport& transport,
            const Operands* operands = nullptr, const NodeBufferUse* turn = nullptr)
      : schedule_(std::move(schedule)),
        execution_(*schedule_, &transport, operands, turn),
        under_way_(schedule_.get()) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Sets a schedule that uses other ranks' buffers in place (a direct schedule). It is tried before
  // the operation's own schedule (Execution::try_first()).
  void try_first(std::shared_ptr<const Schedule> direct) {
    direct_ = std::move(direct);
    execution_.try_first(*direct_);
  }
  bool tries_direct() const { return direct_ != nullptr; }

  // Makes `transport` carry out all steps but those by which ranks meet in the node's shared memory
  // (Execution::leave_all_to()). The transport may let steps wait for this rank's own data. Must
  // precede submission.
  void leave_all_to(Transport& transport) {
    execution_.leave_all_to(transport);
    waits_for_data_ = true;
  }
  bool waits_for_data() const { return waits_for_data_; }
  // Returns whether other ranks wait for later steps of this rank, or will wait for the shared
  // memory that the operation uses.
  bool is_awaited() const { return schedule_->is_awaited() || waits_for_data_; }

  // Makes every thread that advances the operation use the floating-point mode of the calling
  // thread. The thread that starts the operation must call it before it leaves the operation to
  // others.
  void compute_as_here() { computes_as_ = FloatingPoint::of_this_thread(); }
  const FloatingPoint& computes_as() const { return computes_as_; }
  // Keeps Weft's threads from advancing the operation, because it runs a function of the
  // application (a reduction operator) that must not run beside other threads. Must precede
  // submission.
  void leave_to_callers() { by_callers_ = true; }
  bool by_callers() const { return by_callers_; }

  // Advances the operation as far as possible without blocking. Returns true once it is complete.
  // Only one thread may call it at a time: the caller until the operation is submitted, then its
  // executor.
  bool advance();
  // Advances the operation until those rounds come that are left to application threads inside MPI
  // calls. Returns true once the operation is complete.
  bool advance_threads_part();
  // Returns whether all rounds that remain are ones that only application threads inside MPI calls
  // execute.
  bool is_at_callers_part() const { return round() >= under_way().left_from_round; }
  // Advances the operation without completing it, for threads that may not call the MPI library.
  // Returns true once no more than the completion is left, for which another thread must call
  // advance().
  bool advance_to_the_end();
  // Declares that the operation's steps need no transport, only memory. Must precede submission.
  void set_in_memory(bool yes) { in_memory_ = yes; }
  bool in_memory() const { return in_memory_; }
  // Notes that an application thread is blocked until this operation is complete. Unless that
  // thread sleeps, it may take the operation back from the core agent.
  void mark_waited_on() { wanted_.store(true, std::memory_order_relaxed); }
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // The remaining part of the operation. begun: whether it has begun to use the node's shared
  // memory. steps_done: number of steps that are done. signals_before: number of signals that an
  // abandoned schedule has given before.
  struct Rest {
    bool begun;
    std::uint32_t steps_done, signals_before;
  };
  // Returns the remaining part of the operation if any process that can access its buffers may
  // carry it out, because it is part of the compiled schedule; otherwise nullopt. Must not be
  // called while another thread advances the operation.
  std::optional<Rest> rest() const;
  // Notes that another process has carried out the first `steps_done` steps. begun: whether the
  // operation has begun to use the node's shared memory.
  void has_gone_on(bool begun, std::uint32_t steps_done) {
    if (begun) execution_.skip(steps_done);
  }
  // Notes that another process has carried out all steps and has ended the use of the node's shared
  // memory, so that only completion is left.
  void is_over() { stage_ = Stage::over; }

  // Marks the operation as failed because a function of the application that it called never
  // returned.
  void was_left();

  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait_done() const;  // sleeps in the kernel until done() returns true
  // Prepares the operation for other threads, to which its caller leaves it. It is called before
  // another thread's first advance().
  virtual void taken_over() {}
  // Prepares the operation to run again from its first round. done() must be true, and no other
  // thread may use the operation.
  void rewind() {
    if (batch_) execution_.continue_with(*schedule_);
    batch_.reset();
    rounds_before_ = 0;
    execution_.rewind();
    stage_ = Stage::first_batch;
    wanted_.store(false, std::memory_order_relaxed);
    done_.store(0, std::memory_order_release);
  }

  const Schedule& schedule() const { return *schedule_; }
  // round() returns the number of completed rounds, and under_way() the schedule that they belong
  // to. If the schedule has several batches, both refer to the first one.
  std::uint32_t round() const { return round_.load(std::memory_order_relaxed); }
  const Schedule& under_way() const { return *under_way_.load(std::memory_order_relaxed); }

 protected:
  // Completes the operation for its user. error: nullptr on success. It is called once before
  // done() becomes true, by the thread that advanced the last round or met an error. It must not
  // block.
  virtual void finished(const Error* error) = 0;
  bool was_direct() const { return execution_.was_direct(); }

  // Completes an operation that its caller has carried out by itself, for which finished() is not
  // called.
  void end_inline() { done_.store(1, std::memory_order_release); }
  // Lets other threads advance the operation from now on. steps_done: number of steps that its
  // caller has carried out.
  void leave_hand(std::uint32_t steps_done) { execution_.skip(steps_done); }

 private:
  bool advance(bool callers_part);
  bool advance_to_the_end(bool callers_part);
  bool next_batch();
  bool advance_later_batches(bool callers_part);
  bool end(Result<bool>& result);

  std::shared_ptr<const Schedule> schedule_;
  // The schedule in which ranks use each other's buffers in place. It is tried first, and schedule_
  // follows if a rank cannot access the buffers. It is nullptr if there is none.
  std::shared_ptr<const Schedule> direct_;
  // The current batch if it is not the first; otherwise nullptr.
  std::unique_ptr<Schedule> batch_;
  std::uint32_t rounds_before_ = 0;  // number of rounds in all batches before `batch_`
  Execution execution_;
  FloatingPoint computes_as_;
  bool by_callers_ = false;
  bool in_memory_ = false;
  // Whether steps may wait for this rank's own data, so that even the first one may come late.
  bool waits_for_data_ = false;
  // The part of the schedule that the operation executes: the first batch, a later one, or none,
  // since all steps are done (also after a failure).
  enum class Stage : std::uint8_t { first_batch, later_batch, over } stage_ = Stage::first_batch;
  std::optional<Error> error_;  // why a step has failed; nullopt if none has
  std::atomic<bool> wanted_{false};
  // The thread that advances the operation writes the next two members, for observers. They do not
  // synchronise threads.
  std::atomic<std::uint32_t> round_{0};
  std::atomic<const Schedule*> under_way_;
  // 1 once the operation is complete: stored with release, loaded with acquire by waiting threads.
  std::atomic<int> done_{0};
};

}  // namespace weft
