// Progress: the operations under way in this process, advanced by callers inside MPI calls (engine
// function) and by a thread (engines thread and assist).
// Both share one set: the caller helps while it waits, and the thread takes over while a caller is
// blocked inside the MPI library (Hoefler & Lumsdaine, "To Thread or not to Thread", Cluster 2008).
// Without work the thread sleeps in the kernel. Between operations it progresses the application's
// own transfers, such as long messages, which are the MPI library's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/left_calls.h"
#include "engine/baton.h"
#include "engine/mailbox.h"
#include "engine/observer.h"
#include "engine/operation.h"
#include "engine/sleeper.h"
#include "engine/thread.h"
#include "engine/waiting.h"

namespace weft {

// Says what a progress thread may do: nothing, since there must be none; operations that need only
// memory and the processor, so that only callers call the MPI library and complete what the thread
// has advanced; or everything.
enum class ThreadMay : std::uint8_t { nothing, use_memory, do_all };

class Progress {
 public:
  Progress(BackOff backoff, ThreadMay thread_may, Observer& observer);
  ~Progress();

  // Starts the thread now instead of with its first work, to learn whether the system permits it.
  // After an error there is none. stack: as for Thread.
  Result<bool> start(std::span<std::byte> stack = {});
  // Makes callers alone advance operations. Must precede the first submit().
  void go_without_thread();
  // Tells that other threads of the application may submit operations while one blocks. Must
  // precede the first submit().
  void expect_several_callers() { several_callers_ = true; }

  // Sets the baton shared with threads on the same core, for back-off `baton`. Must precede
  // submit().
  void use(Baton baton) { baton_ = std::move(baton); }

  // Sets the mailbox in which commands may be left for this core's agent. Must precede start().
  void use(Mailbox mailbox);
  bool has_mailbox() const { return mailbox_.has_value(); }
  // Submits an operation that needs a thread by leaving `work`, its remaining steps, to the agent.
  // Returns false if the agent does not take it.
  bool leave_to_agent(const std::shared_ptr<Operation>& operation, const Work& work);
  // Returns how many operations the agent has completed.
  std::int64_t ended_by_agent() const { return ended_by_agent_.load(std::memory_order_relaxed); }

  // Submits an operation that the caller has advanced as far as possible. wants_thread: it must
  // progress while the application computes, except for its callers' part; otherwise callers inside
  // MPI calls advance it.
  void submit(std::shared_ptr<Operation> operation, bool wants_thread);

  // Offers an operation that its caller carries out, but in which other ranks may wait for later
  // rounds: any other thread that advances operations takes it over first.
  void offer(std::shared_ptr<Operation> operation);
  // Returns the operation to its caller; false if it has been taken over.
  bool withdraw(const Operation& operation);

  // Advances all operations once, unless another thread is doing so.
  void poll();
  // Does so in MPI_Test and its like, where the library itself may not poll.
  void poll_in_test_call() {
    poll_library_if_due();
    poll();
  }

  // Helps until `complete()` is true, while the thread stands back. For waits that end only by an
  // operation of a Worker, `sleep()` may block instead if nothing is under way here.
  template <class Complete, class Sleep>
  void drive_until(Complete complete, Sleep sleep);

  // Completes an operation that its caller carries out: `advance(polls)` advances it like an
  // Execution and returns whether it is complete.
  template <class Advance>
  void drive_inline(Advance advance);
  // Polls the library unless a wait or test has done so in the last 20 us: a program whose
  // collectives all stay in memory makes no other call in which the library could progress its
  // messages.
  void poll_library_if_due() {
    const std::uint64_t now = now_ticks();
    if (now - library_polled_.load(std::memory_order_relaxed) <= ticks_in_20us()) [[likely]]
      return;
    library_polled_.store(now, std::memory_order_relaxed);
    observer_.keep_library_going();
  }
  // Returns how often to look for another process's signal before yield_core().
  int polls_inline() {
    constexpr int kOnOwnCore = 500, kOnSharedCore = 2;
    poll_library_if_due();
    return shared_core_.load(std::memory_order_relaxed) > 0 ? kOnSharedCore : kOnOwnCore;
  }
  // Advances the operations that are left to callers.
  void advance_callers_own() {
    if (under_way() > 0) [[unlikely]]
      poll_callers_own();
  }
  void poll_callers_own();
  // Yields the core, and learns from the time taken whether other threads wanted it.
  void yield_core();

  // Bracket a call that may block in the MPI library. In between the thread takes over operations
  // in which other ranks wait for this rank's later rounds (the library itself progresses posted
  // messages), also those, and the parts of others, that are otherwise left to callers, and those
  // that other callers submit meanwhile. caller_returns() must be called only if caller_blocks()
  // returned true.
  bool caller_blocks();
  void caller_returns();
  // Calls caller_returns() at the end of its scope.
  class Blocked {
   public:
    explicit Blocked(Progress& progress) : progress_(progress) {}
    ~Blocked() { progress_.caller_returns(); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

   private:
    Progress& progress_;
  };

  // Leaves transfers of the application to the thread, which progresses them from time to time, or,
  // with a negative change, takes some back. started: the number of these that have just begun;
  // opened: how often others may begin some from now on; exposed: the number of these that only
  // others may begin.
  void leave_transfers(int change, std::uint32_t started = 0, std::uint32_t opened = 0,
                       int exposed = 0);

  int under_way() const { return under_way_.load(std::memory_order_relaxed); }

  // Ends the thread; operations under way stay as they are. Is called in finalize and at exit.
  void stop();

 private:
  enum class Who : std::uint8_t { caller, thread };
  struct Entry {
    std::shared_ptr<Operation> operation;
    bool wants_thread = false;
    bool offered = false;          // only in inbox_
    bool over = false;             // only its end is left
    int command = Mailbox::kNone;  // the agent has it
  };

  void add(Entry entry);
  void count(const Entry& entry, int change);
  void count_for_thread(const Entry& entry, int change);
  void leave_to_callers(Entry& entry);
  bool is_back(Who who, Entry& entry);
  bool take_back(Entry& entry);
  void take_all_back();
  // A caller that helps. It may pause: a sleeping caller helps nobody, so that operations started
  // meanwhile are the thread's.
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

  bool thread_has_work() const;
  void wake_thread();
  void ensure_thread();
  void thread_main();
  std::int64_t time_for_pace() const;
  void rest_without_operations();
  void rest_among_operations(std::uint32_t calls_before, bool hides_rounds);
  void doze(std::int64_t ns);
  bool inbox_is_empty();
  void look_at_transfers();
  struct Found {
    bool progressed = false;    // an operation progressed by at least a round
    bool hides_rounds = false;  // one that is left may have progressed unseen
  };
  std::optional<Found> try_advance_all(Who who);  // nullopt: another thread advances
  Found advance_all(Who who);
  void advance_was_left();
  bool advance(Who who, Entry& entry);
  bool may_advance(const Operation& operation, Who who) const {
    return who == Who::caller || !operation.by_callers() || blocked_.load() > 0;
  }
  bool with_thread() const { return thread_may_.load() != ThreadMay::nothing; }

  std::atomic<ThreadMay> thread_may_;  // turns to nothing where no thread can be started
  bool several_callers_ = false;
  std::atomic<std::uint64_t> library_polled_{0};  // by poll_library_if_due(), in ticks
  Observer& observer_;

  // Begins once the lock is held, and ends before it is released.
  class Advancing final : public Duty {
   public:
    explicit Advancing(Progress& progress) : progress_(progress) {}

   private:
    void fulfil() override { progress_.advance_was_left(); }
    Progress& progress_;
  };

  std::mutex advancing_;  // held by whoever advances; guards active_
  Advancing advancing_duty_{*this};
  std::vector<Entry> active_;
  static constexpr std::size_t kNowhere = SIZE_MAX;
  std::size_t at_ =
      kNowhere;             // in active_: what is advanced now; of those before it some have moved
  std::mutex inbox_mutex_;  // guards inbox_ and the start of thread_
  std::vector<Entry> inbox_;

  std::atomic<int> under_way_{0};   // in inbox_ or active_; written by submit and advance_all
  std::atomic<int> for_thread_{0};  // of those, with wants_thread and not over
  std::atomic<int> awaited_{0};     // of those, in which other ranks wait for later rounds
  std::atomic<int> by_callers_{0};  // of those, left to callers
  std::atomic<int> helping_{0};     // callers inside drive_until
  std::atomic<int> blocked_{0};     // callers between caller_blocks and caller_returns
  std::atomic<int> transfers_{0};   // left to the thread
  std::atomic<int> exposed_{0};     // of those, what others may begin
  std::atomic<std::uint32_t> transfers_started_{0}, transfers_opened_{0};
  Sleeper<> sleeper_;  // the thread; the agent may wake it, too
  std::atomic<bool> stopping_{false};
  std::atomic<int> shared_core_{0};  // a hint: > 0 while others lately wanted this core
  Baton baton_;
  std::optional<Mailbox> mailbox_;
  std::uint32_t looks_at_commands_ = 0;  // by whoever holds advancing_
  std::atomic<std::int64_t> ended_by_agent_{0};
  Waiting waiting_;  // of the thread
  Thread thread_;
};

// Is not inlined, for the sake of callers that need not wait.
template <class Complete, class Sleep>
[[gnu::noinline]] void Progress::drive_until(Complete complete, Sleep sleep) {
  constexpr int kPollsOnOwnCore = 64, kPollsOnSharedCore = 2, kPollsPerCall = 16;
  Lasting<Helping> helping(*this);
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
