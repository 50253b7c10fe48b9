// Operation: a started collective call on this rank, with its schedule, execution and state.
// Executors know nothing of MPI. The thread that advances the last round calls finished() once.
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
  // operands, turn: the buffers, and the use of the node buffers, that the Execution gets.
  Operation(std::shared_ptr<const Schedule> schedule, Transport& transport,
            const Operands* operands = nullptr, const NodeBufferUse* turn = nullptr)
      : schedule_(std::move(schedule)),
        execution_(*schedule_, &transport, operands, turn),
        under_way_(schedule_.get()) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Sets a direct schedule, which uses other ranks' buffers in place. It is tried before the
  // operation's own schedule (Execution::try_first()).
  void try_first(std::shared_ptr<const Schedule> direct) {
    direct_ = std::move(direct);
    execution_.try_first(*direct_);
  }
  bool tries_direct() const { return direct_ != nullptr; }

  // Makes every thread that advances the operation compute with the calling thread's floating-point
  // mode. The starting thread calls it before it leaves the operation to others.
  void compute_as_here() { computes_as_ = FloatingPoint::of_this_thread(); }
  const FloatingPoint& computes_as() const { return computes_as_; }
  // Keeps Weft's threads from advancing the operation, because it runs an application function that
  // expects no other thread. Must precede submission.
  void leave_to_callers() { by_callers_ = true; }
  bool by_callers() const { return by_callers_; }

  // Advances the operation as far as possible without blocking. Returns true once it is complete.
  // Only one thread may call it at a time: the caller before submission, then the executor.
  bool advance();
  // Advances the operation up to the part of its schedule that only application threads inside MPI
  // calls advance. Returns true once the operation is complete.
  bool advance_threads_part();
  // Returns whether the part of the schedule that only application threads advance comes next or is
  // in progress.
  bool is_at_callers_part() const { return round() >= under_way().left_from_round; }
  // Advances the operation without completing it, for threads that may not call the MPI library.
  // Returns true once another thread's advance() only needs to complete it.
  bool advance_to_the_end();
  // Declares that the operation's steps need only memory and the processor, not the transport. Must
  // precede submission.
  void set_in_memory(bool yes) { in_memory_ = yes; }
  bool in_memory() const { return in_memory_; }
  // Notes that a caller waits for this operation alone.
  void mark_waited_on() { wanted_.store(true, std::memory_order_relaxed); }
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // The part of the operation that is left: whether its use of the node buffers has begun, how many
  // steps are done, and the value from which its signal counters continue.
  struct Rest {
    bool begun;
    std::uint32_t steps_done, signals_before;
  };
  // Returns the rest of the operation if it belongs to the schedule's program, which any process
  // that can access its buffers may carry out; nullopt otherwise. Must not be called during an
  // advance.
  std::optional<Rest> rest() const;
  // Notes that another process has carried out `steps_done` steps of the program. begun: whether
  // the operation has begun to use the node buffers.
  void has_gone_on(bool begun, std::uint32_t steps_done) {
    if (begun) execution_.skip(steps_done);
  }
  // Notes that another process has carried out all steps and ended the use of the node buffers, so
  // that only completion is left.
  void is_over() { stage_ = Stage::over; }

  // Marks the operation as failed because an application function that it called never returned.
  void was_left();

  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait_done() const;  // sleeps in the kernel until done()
  // Prepares the operation for other threads, which take it over from its caller. Is called before
  // their first advance().
  virtual void taken_over() {}
  // Restarts from the first round. Requires done() and that no other thread accesses the operation.
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
  // Return the number of completed rounds and the schedule that they belong to, for observers. For
  // a schedule in batches both refer to the first batch.
  std::uint32_t round() const { return round_.load(std::memory_order_relaxed); }
  const Schedule& under_way() const { return *under_way_.load(std::memory_order_relaxed); }

 protected:
  // Completes the operation for its user; error: nullptr on success. Is called once before done()
  // becomes true, by the thread that advanced the last round or met an error. It must not block.
  virtual void finished(const Error* error) = 0;
  bool was_direct() const { return execution_.was_direct(); }

  // Completes an operation that its caller has carried out by itself. Replaces finished().
  void end_inline() { done_.store(1, std::memory_order_release); }
  // Lets other threads advance the operation from now on. steps_done: number of steps that the
  // caller has carried out.
  void leave_hand(std::uint32_t steps_done) { execution_.skip(steps_done); }

 private:
  bool advance(bool callers_part);
  bool advance_to_the_end(bool callers_part);
  bool next_batch();
  bool advance_later_batches(bool callers_part);
  bool end(Result<bool>& result);

  std::shared_ptr<const Schedule> schedule_;
  std::shared_ptr<const Schedule> direct_;  // the schedule that is tried first, with other ranks'
                                            // buffers used in place; nullptr if there is none
  std::unique_ptr<Schedule> batch_;         // the batch under way, if it is not the first
  std::uint32_t rounds_before_ = 0;         // rounds in the batches before `batch_`
  Execution execution_;
  FloatingPoint computes_as_;
  bool by_callers_ = false;
  bool in_memory_ = false;
  // The part of the schedule in progress. over: all steps are done, or a step has failed.
  enum class Stage : std::uint8_t { first_batch, later_batch, over } stage_ = Stage::first_batch;
  std::optional<Error> error_;  // set if a step has failed
  std::atomic<bool> wanted_{false};
  // The advancing thread writes the next two members, for observers; they are not used to
  // synchronise threads.
  std::atomic<std::uint32_t> round_{0};
  std::atomic<const Schedule*> under_way_;
  std::atomic<int> done_{0};  // set by the advancing thread (release), read by waiters (acquire)
};

}  // namespace weft
