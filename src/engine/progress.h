// Progress: the operations in progress in this process. Application threads inside MPI calls
// (callers) advance them (engine function), and so does a thread (engines thread and assist). Both
// share one set: a caller helps while it waits, and the thread takes over while a caller is blocked
// inside the MPI library (Hoefler & Lumsdaine, "To Thread or not to Thread", Cluster 2008). Without
// work the thread sleeps in the kernel. Between operations it lets the MPI library progress the
// application's own transfers, such as long messages.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/left_calls.h"
#include "engine/core_agent.h"
#include "engine/mailbox.h"
#include "engine/observer.h"
#include "engine/operation.h"
#include "engine/sleeper.h"
#include "engine/thread.h"
#include "engine/waiting.h"

namespace weft {

// Says what the progress thread may do. nothing: there must be no thread. use_memory: it may
// advance operations that need only memory, but may not call the MPI library; application threads
// then complete the operations. do_all: everything.
enum class ThreadMay : std::uint8_t { nothing, use_memory, do_all };

class Progress {
 public:
  Progress(BackOff backoff, ThreadMay thread_may, Observer& observer);
  ~Progress();

  // Starts the progress thread now instead of with its first work, to learn whether the system
  // permits it. Returns an error if it does not. stack: memory for the thread's stack, passed to
  // Thread::start().
  Result<bool> start(std::span<std::byte> stack = {});
  // Makes application threads inside MPI calls advance all operations, and ends the progress
  // thread. Must precede the first submit().
  void go_without_thread();
  // Tells that other application threads may submit operations while one of them blocks. Must
  // precede the first submit().
  void expect_several_callers() { several_callers_ = true; }

  // Makes the progress thread serve as the agent of its core, too. The agent must live until stop()
  // has returned. Must precede start(), and use(Mailbox).
  void serve(CoreAgent& agent);
  // Sets the mailbox in which this process leaves commands for this core's agent. Must precede
  // start() if another process serves as the agent.
  void use(Mailbox mailbox);
  bool has_mailbox() const { return mailbox_.has_value(); }
  // Makes application threads that wait sleep while the core agent and the progress thread carry
  // out all operations of this process. It is for ranks that share cores: there a thread that polls
  // takes the core from ranks that compute. Otherwise a thread that waits takes its operation back
  // from the agent. Must precede the first submit(), and needs a mailbox.
  void sleep_in_waits() { sleeps_in_waits_ = true; }
  // Leaves the remaining steps of an operation, described by `work`, to the core agent. Returns
  // false if the agent does not take the operation, which must then be submitted.
  bool leave_to_agent(const std::shared_ptr<Operation>& operation, const Work& work);
  // Returns how many operations of this process the core agent has carried out to their end.
  std::int64_t ended_by_agent() const { return ended_by_agent_.load(std::memory_order_relaxed); }

  // Submits an operation that the caller has advanced as far as possible. wants_thread: true if the
  // operation must progress while the application computes, except for rounds of its schedule that
  // are left to callers. Otherwise only application threads inside MPI calls advance it.
  void submit(std::shared_ptr<Operation> operation, bool wants_thread);

  // Offers an operation that its caller carries out itself, and in whose later rounds other ranks
  // may wait for this one. Any other thread that advances operations takes it over.
  void offer(std::shared_ptr<Operation> operation);
  // Takes an offered operation back. Returns true if the caller has it again, false if another
  // thread has taken it over.
  bool withdraw(const Operation& operation);

  // Advances all operations once, unless another thread is doing so.
  void poll();
  // Lets the MPI library progress if poll_library_if_due() finds that due, and advances all
  // operations once. MPI_Test and similar calls use it, since their own call of the library may be
  // left out.
  void poll_in_test_call() {
    poll_library_if_due();
    poll();
  }

  // Advances operations until complete() returns true. Meanwhile the progress thread pauses. When
  // no operation is in progress here, it calls sleep(), which may block until another thread (a
  // Worker) completes what the caller waits for.
  template <class Complete, class Sleep>
  void drive_until(Complete complete, Sleep sleep) {
    drive(complete, sleep, false);
  }
  // Does the same for a caller that waits only for operations of this class, which may sleep while
  // others carry them out (sleep_in_waits()).
  template <class Complete, class Sleep>
  void wait_until(Complete complete, Sleep sleep) {
    drive(complete, sleep, sleeps_in_waits_);
  }

  // Completes an operation that its caller carries out itself. advance(polls): like
  // Execution::advance(), returns whether the operation is complete.
  template <class Advance>
  void drive_inline(Advance advance);
  // Lets the MPI library progress its messages, unless this was done within the last 20 us. A
  // program whose collectives all stay in memory makes no other call in which the library could do
  // so.
  void poll_library_if_due() {
    const std::uint64_t now = now_ticks();
    if (now - library_polled_.load(std::memory_order_relaxed) <= ticks_in_20us()) [[likely]]
      return;
    library_polled_.store(now, std::memory_order_relaxed);
    observer_.keep_library_going();
  }
  // Returns how often to read another rank's counter in shared memory before calling yield_core().
  int polls_inline() {
    constexpr int kOnOwnCore = 500, kOnSharedCore = 2;
    poll_library_if_due();
    return shared_core_.load(std::memory_order_relaxed) > 0 ? kOnSharedCore : kOnOwnCore;
  }
  // Advances those operations that only application threads inside MPI calls may advance.
  void advance_callers_own() {
    if (under_way() > 0) [[unlikely]]
      poll_callers_own();
  }
  void poll_callers_own();
  // Yields the core, and notes whether other threads wanted it. polls_inline() depends on that.
  void yield_core();

  // caller_blocks() must be called before an MPI call that may block. If it has returned true,
  // caller_returns() must be called after that call. In between, the progress thread takes over all
  // operations in whose later rounds other ranks wait for this one, including those left to callers
  // and those that other callers submit meanwhile. The MPI library itself progresses messages that
  // are already posted.
  bool caller_blocks();
  void caller_returns();
  // Blocked: calls caller_returns() when it is destroyed. It must be made after caller_blocks() has
  // returned true.
  class Blocked {
   public:
    explicit Blocked(Progress& progress) : progress_(progress) {}
    ~Blocked() { progress_.caller_returns(); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

   private:
    Progress& progress_;
  };

  // Changes the number of the application's transfers for which the progress thread polls by
  // `change`. started: how many of them have just begun. opened: how often the application has just
  // exposed a window to accesses by other ranks. exposed: change of the number of exposed windows.
  // answered: change of the number of windows that other ranks may lock (AnswerPace).
  void leave_transfers(int change, std::uint32_t started = 0, std::uint32_t opened = 0,
                       int exposed = 0, int answered = 0);

  int under_way() const { return under_way_.load(std::memory_order_relaxed); }

  // Ends the progress thread; operations in progress stay as they are. It is called in MPI_Finalize
  // and at process exit.
  void stop();

 private:
  enum class Who : std::uint8_t { caller, thread };
  struct Entry {
    std::shared_ptr<Operation> operation;
    bool wants_thread = false;
    // True if the operation was offered by offer() and is still in inbox_.
    bool offered = false;
    bool over = false;  // true if all steps are done, so that only completion is left
    // Index of the command with which the core agent has the operation; kNone if it has not.
    int command = Mailbox::kNone;
  };

  void add(Entry entry);
  void count(const Entry& entry, int change);
  void count_for_thread(const Entry& entry, int change);
  void leave_to_callers(Entry& entry);
  bool is_back(Who who, Entry& entry);
  bool take_back(Entry& entry);
  void take_all_back();
  // Helping: exists while an application thread advances operations because it waits. While that
  // thread sleeps, pause() lets the progress thread advance operations.
  class Helping {
   public:
    explicit Helping(Progress& progress) : progress_(progress) { resume(); }
    ~Helping() {
      if (helps_) pause();
    }
    Helping(const Helping&) = delete;
    Helping& operator=(const Helping&) = delete;
    void pause() {
      helps_ = false;
      progress_.helping_.fetch_sub(1);
      progress_.wake_thread();
    }
    void resume() {
      helps_ = true;
      progress_.helping_.fetch_add(1);
    }

   private:
    Progress& progress_;
    bool helps_ = false;
  };

  template <class Complete, class Sleep>
  void drive(Complete complete, Sleep sleep, bool may_leave_all);
  bool others_do_all() const;
  template <class Complete>
  void sleep_until(Complete complete);
  void tell_waiting() const {
    if (mailbox_) mailbox_->tell_waiting();
  }
  bool thread_has_own_work() const;
  bool thread_has_work() const;
  void wake_thread();
  void ensure_thread();
  void thread_main();
  std::int64_t time_for_pace() const;
  void rest_without_operations();
  void rest_among_operations(std::uint32_t calls_before, bool hides_rounds);
  void doze(std::uint32_t calls_before, std::int64_t ns);
  bool inbox_is_empty();
  void look_at_transfers();
  struct Found {
    bool progressed = false;  // true if some operation or command has gone on
    // True if that was a round of this process's operations, or if it has none for the thread.
    bool ended_round = false;
    // True if an operation that is not complete may progress without completing rounds.
    bool hides_rounds = false;
  };
  Found advance_as_thread();
  std::optional<Found> try_advance_all(Who who);  // advances all operations; returns nullopt if
                                                  // another thread is advancing them
  Found advance_all(Who who);
  void advance_was_left();
  bool advance(Who who, Entry& entry);
  bool may_advance(const Operation& operation, Who who) const {
    return who == Who::caller || !operation.by_callers() || blocked_.load() > 0;
  }
  bool with_thread() const { return thread_may_.load() != ThreadMay::nothing; }

  std::atomic<ThreadMay> thread_may_;  // set to `nothing` if the system refuses to start a thread
  std::optional<Error> refused_;       // why the system refused it
  bool several_callers_ = false;
  bool sleeps_in_waits_ = false;
  std::atomic<std::uint64_t> library_polled_{0};  // clock ticks at the last poll_library_if_due()
  Observer& observer_;

  // Advancing: its clean_up() runs if the thread that holds advancing_ never returns from the
  // application's reduction operator (base/left_calls.h).
  class Advancing final : public Cleanup {
   public:
    explicit Advancing(Progress& progress) : progress_(progress) {}

   private:
    void clean_up() override { progress_.advance_was_left(); }
    Progress& progress_;
  };

  std::mutex advancing_;  // held by the thread that advances operations; guards active_
  Advancing advancing_duty_{*this};
  std::vector<Entry> active_;
  static constexpr std::size_t kNowhere = SIZE_MAX;
  // This is the index in active_ of the operation that is being advanced, or kNowhere. Operations
  // before it may have been moved forward, to fill the places of completed ones.
  std::size_t at_ = kNowhere;
  std::mutex inbox_mutex_;  // guards inbox_ and the start of thread_
  std::vector<Entry> inbox_;

  std::atomic<int> under_way_{0};  // number of operations in inbox_ and active_
  // Number of operations that the progress thread must advance, without those that are over or left
  // to the core agent.
  std::atomic<int> for_thread_{0};
  // Number of operations in whose later rounds other ranks wait for this one.
  std::atomic<int> awaited_{0};
  // Number of operations that only application threads inside MPI calls may advance.
  std::atomic<int> by_callers_{0};
  std::atomic<int> helping_{0};  // number of application threads inside drive_until()
  // Number of application threads between caller_blocks() and caller_returns().
  std::atomic<int> blocked_{0};
  // Number of the application's transfers for which the progress thread polls.
  std::atomic<int> transfers_{0};
  std::atomic<int> exposed_{0};  // number of exposed windows, which also count in transfers_
  // Number of windows that other ranks may lock, which also count in transfers_.
  std::atomic<int> answered_{0};
  std::atomic<std::uint32_t> transfers_started_{0}, transfers_opened_{0};
  Sleeper<> sleeper_;  // lets the progress thread sleep; other processes may wake it, too: the core
                       // agent, or ranks that leave commands for it
  std::atomic<bool> stopping_{false};
  std::atomic<int> shared_core_{0};  // hint: positive if other threads lately wanted this core
  std::optional<Mailbox> mailbox_;
  CoreAgent* agent_ = nullptr;  // the agent as which the thread serves; nullptr if it does not
  std::uint32_t looks_at_commands_ = 0;  // guarded by advancing_
  std::atomic<std::int64_t> ended_by_agent_{0};
  Waiting waiting_;  // used by the progress thread only
  Thread thread_;
};

// This function is not inlined, so that calls which need not wait stay small.
template <class Complete, class Sleep>
[[gnu::noinline]] void Progress::drive(Complete complete, Sleep sleep, bool may_leave_all) {
  constexpr int kPollsOnOwnCore = 64, kPollsOnSharedCore = 2, kPollsPerCall = 16;
  LongjmpSafe<Helping> helping(*this);
  poll_library_if_due();
  for (int polls = 0; !complete(); ++polls) {
    if (polls % kPollsPerCall == kPollsPerCall - 1) observer_.keep_library_going();
    if (under_way() > 0) {
      poll();
      if (may_leave_all && polls >= kPollsOnSharedCore && others_do_all()) {
        helping->pause();
        sleep_until(complete);
        helping->resume();
      } else if (polls >= (shared_core_ > 0 ? kPollsOnSharedCore : kPollsOnOwnCore)) {
        yield_core();
      }
    } else {
      helping->pause();
      sleep();
      helping->resume();
    }
  }
}

// Sleeps while others carry out all operations of this process, until complete() returns true. In
// between it completes what they have ended, looks whether the agent has ended, and lets the MPI
// library progress, since the progress thread does that only for transfers that it knows of.
template <class Complete>
void Progress::sleep_until(Complete complete) {
  constexpr std::int64_t kLongest_ns = 1'000'000;
  while (!complete() && others_do_all()) {
    mailbox_->sleep(kLongest_ns, [&] { return !complete() && others_do_all(); });
    poll();
    poll_library_if_due();
  }
}

template <class Advance>
void Progress::drive_inline(Advance advance) {
  if (advance(polls_inline())) return;
  drive_until([&] { return advance(1); }, [&] { yield_core(); });
}

}  // namespace weft
