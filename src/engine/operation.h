// Operation: one started collective call on this rank: a schedule, what carries it out, its state.
// Why: executors know nothing of MPI; whoever advances the last round calls finished() once.
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
  // operands, turn: as for an Execution.
  Operation(std::shared_ptr<const Schedule> schedule, Transport& transport,
            const Operands* operands = nullptr, const NodeTurn* turn = nullptr)
      : schedule_(std::move(schedule)),
        execution_(*schedule_, &transport, operands, turn),
        under_way_(schedule_.get()) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // As for an Execution.
  void try_first(std::shared_ptr<const Schedule> direct) {
    direct_ = std::move(direct);
    execution_.try_first(*direct_);
  }
  bool tries_direct() const { return direct_ != nullptr; }

  // Whoever advances it from now on computes as this thread does now: its caller, who leaves it to
  // others.
  void compute_as_here() { computes_as_ = FloatingPoint::of_this_thread(); }
  const FloatingPoint& computes_as() const { return computes_as_; }
  // It runs a function of the application's, which expects no other thread: no thread of Weft's
  // advances it beside the application. Before it is submitted.
  void leave_to_callers() { by_callers_ = true; }
  bool by_callers() const { return by_callers_; }

  // Goes on as far as possible without blocking; true once done. One thread at a time: before
  // submission the caller, afterwards the executor that holds the operation.
  bool advance();
  // The same up to what the schedule leaves to callers.
  bool advance_threads_part();
  // That comes next, or is under way.
  bool is_at_callers_part() const { return round() >= under_way().left_from_round; }
  // The same without the end, which may need what the calling thread must not use: true once only
  // the end is left, for an advance() of another thread's.
  bool advance_to_the_end();
  // Its steps need nothing but memory and the processor, not the transport. Before submission.
  void set_in_memory(bool yes) { in_memory_ = yes; }
  bool in_memory() const { return in_memory_; }
  // A caller waits for nothing but its end.
  void want() { wanted_.store(true, std::memory_order_relaxed); }
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // What is left of it, where that is a part of its schedule's program, which anybody who reaches
  // its buffers may carry out; nullopt: it is not. Between advances.
  struct Rest {
    bool begun;
    std::uint32_t steps_done, signals_before;
  };
  std::optional<Rest> rest() const;
  // Others have carried out so many steps of the program meanwhile; begun: its turn has.
  void has_gone_on(bool begun, std::uint32_t steps_done) {
    if (begun) execution_.skip(steps_done);
  }
  // Others have carried out all the rest, and ended its turn: only the end is left.
  void is_over() { stage_ = Stage::over; }

  // Whoever advanced it never came back: it has failed.
  void was_left();

  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait_done() const;  // sleeps in the kernel until done()
  // It was its caller's, and is advanced by others from now on. Before their first advance().
  virtual void taken_over() {}
  // After done(), and where no other thread looks at it: from the first round on again.
  void rewind() {
    if (section_) execution_.go_on_with(*schedule_);
    section_.reset();
    rounds_before_ = 0;
    execution_.rewind();
    stage_ = Stage::first_section;
    wanted_.store(false, std::memory_order_relaxed);
    done_.store(0, std::memory_order_release);
  }

  const Schedule& schedule() const { return *schedule_; }
  // Rounds completed, and of which schedule, for whoever looks on: of one in sections the first.
  std::uint32_t round() const { return round_.load(std::memory_order_relaxed); }
  const Schedule& under_way() const { return *under_way_.load(std::memory_order_relaxed); }

 protected:
  // Called once, before done() turns true, by the thread that advanced the last round or met an
  // error; must not block.
  virtual void finished(const Error* error) = 0;
  bool was_direct() const { return execution_.was_direct(); }

  // For one that its caller has carried out by itself, while nobody else looked at it: instead of
  // finished().
  void end_in_hand() { done_.store(1, std::memory_order_release); }
  // From here on it is to be advanced: so many steps have been done.
  void leave_hand(std::uint32_t steps_done) { execution_.skip(steps_done); }

 private:
  bool advance(bool callers_part);
  bool advance_to_the_end(bool callers_part);
  bool next_section();
  bool advance_later_sections(bool callers_part);
  bool end(Result<bool>& result);

  std::shared_ptr<const Schedule> schedule_;
  std::shared_ptr<const Schedule> direct_;  // tried first; nullptr: none
  std::unique_ptr<Schedule> section_;       // under way, after the first one of `schedule_`
  std::uint32_t rounds_before_ = 0;         // in the sections before it
  Execution execution_;
  FloatingPoint computes_as_;
  bool by_callers_ = false;
  bool in_memory_ = false;
  // over: all steps have been done, or one has failed.
  enum class Stage : std::uint8_t {
    first_section,
    later_section,
    over
  } stage_ = Stage::first_section;
  std::optional<Error> error_;  // in that case
  std::atomic<bool> wanted_{false};
  // Written by the advancing thread; pair with nothing.
  std::atomic<std::uint32_t> round_{0};
  std::atomic<const Schedule*> under_way_;
  std::atomic<int> done_{0};  // set by the advancing thread (release), read by waiters (acquire)
};

}  // namespace weft
