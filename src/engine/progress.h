// Progress: the operations under way in this process. Callers inside MPI calls advance them (engine
// function), and so does a thread (engines thread and assist). Both share one set: the caller helps
// while it waits, and the thread takes over while a caller is blocked inside the MPI library
// (Hoefler & Lumsdaine, "To Thread or not to Thread", Cluster 2008). Without work the thread sleeps
// in the kernel. Between operations it lets the MPI library progress the application's own
// transfers, such as long messages.
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

// Says what the progress thread may do. nothing: there must be no thread. use_memory: advance
// operations that need only memory and the processor; callers call the MPI library and complete
// what the thread has advanced. do_all: everything.
enum class ThreadMay : std::uint8_t { nothing, use_memory, do_all };

class Progress {
 public:
  Progress(BackOff backoff, ThreadMay thread_may, Observer& observer);
  ~Progress();

  // Starts the thread now instead of with its first work, to learn whether the system permits it.
  // After an error there is no thread. stack: is passed to Thread::start().
  Result<bool> start(std::span<std::byte> stack = {});
  // Makes application threads inside MPI calls advance all operations, without a progress thread.
  // Must precede the first submit().
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
  // Submits an operation that needs a thread, and leaves its remaining steps, `work`, to the core
  // agent. Returns whether the agent accepts the operation.
  bool leave_to_agent(const std::shared_ptr<Operation>& operation, const Work& work);
  // Returns how many operations the core agent has completed for this process.
  std::int64_t ended_by_agent() const { return ended_by_agent_.load(std::memory_order_relaxed); }

  // Submits an operation that the caller has advanced as far as possible. wants_thread: the
  // operation must progress while the application computes, except for the part of its schedule
  // that is left to callers. Otherwise only application threads inside MPI calls advance it.
  void submit(std::shared_ptr<Operation> operation, bool wants_thread);

  // Offers an operation that its caller carries out but in whose later rounds other ranks may wait
  // for this one. Any other thread that advances operations takes it over first.
  void offer(std::shared_ptr<Operation> operation);
  // Returns an offered operation to its caller. Returns true if the caller has it again, false if
  // another thread has taken it over.
  bool withdraw(const Operation& operation);

  // Advances all operations once, unless another thread is doing so.
  void poll();
  // Polls the library if that is due, and advances all operations once. Is for MPI_Test and similar
  // calls, in which the library itself may not poll.
  void poll_in_test_call() {
    poll_library_if_due();
    poll();
  }

  // Advances operations until `complete()` returns true; meanwhile the progress thread pauses. For
  // waits that end only by an operation of a Worker, `sleep()` may block instead if nothing is
  // under way here.
  template <class Complete, class Sleep>
  void drive_until(Complete complete, Sleep sleep);

  // Completes an operation that its caller carries out. advance(polls): advances it like an
  // Execution and returns whether it is complete.
  template <class Advance>
  void drive_inline(Advance advance);
  // Polls the library unless a wait or test has polled it within the last 20 us. A program whose
  // collectives all stay in memory makes no other call in which the library could progress its
  // messages.
  void poll_library_if_due() {
    const std::uint64_t now = now_ticks();
    if (now - library_polled_.load(std::memory_order_relaxed) <= ticks_in_20us()) [[likely]]
      return;
    library_polled_.store(now, std::memory_order_relaxed);
    observer_.keep_library_going();
  }
  // Returns how often to look for another process's signal before calling yield_core().
  int polls_inline() {
    constexpr int kOnOwnCore = 500, kOnSharedCore = 2;
    poll_library_if_due();
    return shared_core_.load(std::memory_order_relaxed) > 0 ? kOnSharedCore : kOnOwnCore;
  }
  // Advances the operations that only application threads inside MPI calls may advance.
  void advance_callers_own() {
    if (under_way() > 0) [[unlikely]]
      poll_callers_own();
  }
  void poll_callers_own();
  // Yields the core, and notes whether other threads wanted it, which polls_inline() uses.
  void yield_core();

  // The next two functions enclose a call that may block in the MPI library. In between the
  // progress thread takes over all operations in whose later rounds other ranks wait for this one,
  // including those left to callers and those that other callers submit meanwhile. The library
  // itself progresses messages that are already posted. caller_returns() must be called only if
  // caller_blocks() returned true.
  bool caller_blocks();
  void caller_returns();
  // An object that calls caller_returns() when it is destroyed, for use after caller_blocks() has
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

  // Adds transfers of the application to those that the progress thread polls for, or removes some
  // if `change` is negative. started: how many of these have just begun. opened: how often the
  // application has just exposed a window to accesses by other ranks. exposed: the change in the
  // number of exposed windows. answered: the change in the number of windows that other ranks may
  // lock (AnswerPace).
  void leave_transfers(int change, std::uint32_t started = 0, std::uint32_t opened = 0,
                       int exposed = 0, int answered = 0);

  int under_way() const { return under_way_.load(std::memory_order_relaxed); }

  // Ends the thread; operations under way stay as they are. Is called in MPI_Finalize and at
  // process exit.
  void stop();

 private:
  enum class Who : std::uint8_t { caller, thread };
  struct Entry {
    std::shared_ptr<Operation> operation;
    bool wants_thread = false;
    bool offered = false;          // set by offer(); used only in inbox_
    bool over = false;             // all steps are done, so that only completion is left
    int command = Mailbox::kNone;  // number of the command by which the core agent has the
                                   // operation; kNone if it has not
  };

  void add(Entry entry);
  void count(const Entry& entry, int change);
  void count_for_thread(const Entry& entry, int change);
  void leave_to_callers(Entry& entry);
  bool is_back(Who who, Entry& entry);
  bool take_back(Entry& entry);
  void take_all_back();
  // An application thread that advances operations while it waits. While it sleeps it is paused, so
  // that the progress thread advances operations started meanwhile.
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
    bool progressed = false;    // an operation progressed by at least a round
    bool hides_rounds = false;  // a remaining operation may have progressed without completing a
                                // round
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

  std::atomic<ThreadMay> thread_may_;  // becomes `nothing` if no thread can be started
  bool several_callers_ = false;
  std::atomic<std::uint64_t> library_polled_{0};  // time of the last poll_library_if_due(), in
                                                  // ticks
  Observer& observer_;

  // Ends an advance whose thread never returns from the application's reduction operator and still
  // holds advancing_ (base/left_calls.h).
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
  std::size_t at_ = kNowhere;  // index in active_ of the operation that is being advanced; entries
                               // before it may have been moved
  std::mutex inbox_mutex_;     // guards inbox_ and the start of thread_
  std::vector<Entry> inbox_;

  std::atomic<int> under_way_{0};  // number of operations in inbox_ or active_; written by submit()
                                   // and advance_all()
  std::atomic<int> for_thread_{0};  // operations with wants_thread, not over nor with the agent
  std::atomic<int> awaited_{0};  // operations in whose later rounds other ranks wait for this one
  std::atomic<int> by_callers_{0};  // operations that only application threads inside MPI calls may
                                    // advance
  std::atomic<int> helping_{0};     // application threads inside drive_until()
  std::atomic<int> blocked_{0};  // application threads between caller_blocks() and caller_returns()
  std::atomic<int> transfers_{0};  // transfers of the application that the progress thread polls
                                   // for
  std::atomic<int> exposed_{0};    // exposed windows; they are part of transfers_
  std::atomic<int> answered_{0};   // windows that other ranks may lock; they are part of transfers_
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

// This function is not inlined, to keep callers small that need not wait.
template <class Complete, class Sleep>
[[gnu::noinline]] void Progress::drive_until(Complete complete, Sleep sleep) {
  constexpr int kPollsOnOwnCore = 64, kPollsOnSharedCore = 2, kPollsPerCall = 16;
  LongjmpSafe<Helping> helping(*this);
  poll_library_if_due();
  for (int polls = 0; !complete(); ++polls) {
    if (polls % kPollsPerCall == kPollsPerCall - 1) observer_.keep_library_going();
    if (under_way() > 0) {
      poll();
      if (polls >= (shared_core_ > 0 ? kPollsOnSharedCore : kPollsOnOwnCore)) yield_core();
    } else {
      helping->pause();
      sleep();
      helping->resume();
    }
  }
}

template <class Advance>
void Progress::drive_inline(Advance advance) {
  if (advance(polls_inline())) return;
  drive_until([&] { return advance(1); }, [&] { yield_core(); });
}

}  // namespace weft
