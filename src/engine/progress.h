// Progress: the set of operations under way in this process, and who advances them: callers
// inside MPI calls (engine function), and a thread (engines thread and assist).
// Why one set for both: the caller helps while it waits, and the thread takes over while a
// caller is blocked inside the MPI library. Hoefler & Lumsdaine, "To Thread or not to Thread",
// Cluster 2008. With nothing for it to do, the thread sleeps in the kernel. Between the operations
// it looks after transfers of the application's, which are the MPI library's: messages and the
// like.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/left_calls.h"
#include "engine/baton.h"
#include "engine/observer.h"
#include "engine/operation.h"
#include "engine/orders.h"
#include "engine/sleeper.h"
#include "engine/thread.h"
#include "engine/waiting.h"

namespace weft {

// What a progress thread may do: nothing, since there is none to be; what needs memory and the
// processor alone, so that the MPI library sees callers only, who also end what the thread has
// advanced; or everything.
enum class ThreadMay : std::uint8_t { nothing, use_memory, do_all };

class Progress {
 public:
  Progress(BackOff backoff, ThreadMay thread_may, Observer& observer);
  ~Progress();

  // Starts the thread now rather than with the first work for it, so that whether it can be had is
  // known. After an error there is none. stack: as Thread has it.
  Result<bool> start(std::span<std::byte> stack = {});
  // From now on callers only advance operations. Before the first submit().
  void go_without_thread();
  // While one of the application's threads blocks, another may submit operations. Before the first
  // submit().
  void expect_several_callers() { several_callers_ = true; }

  // With back-off `baton`: shared with the threads on the same core. Before the first submit().
  void use(Baton baton) { baton_ = std::move(baton); }

  // Where operations may be left to the agent of this core. Before start().
  void use(Desk desk);
  bool has_desk() const { return desk_.has_value(); }
  // The same as submit(), of one that wants the thread; this work is what is left of it. False: the
  // agent does not take it.
  bool leave_to_agent(const std::shared_ptr<Operation>& operation, const Work& work);
  // Operations that the agent has brought to their end.
  std::int64_t ended_by_agent() const { return ended_by_agent_.load(std::memory_order_relaxed); }

  // The caller has advanced the operation as far as it goes. wants_thread: it must go on while
  // the application computes, up to what its schedule leaves to callers; otherwise callers inside
  // MPI calls advance it.
  void submit(std::shared_ptr<Operation> operation, bool wants_thread);

  // An operation in its caller's hand, in which other ranks may wait for this rank's later rounds:
  // whoever advances what is under way takes it over first.
  void offer(std::shared_ptr<Operation> operation);
  // Its caller goes on with it. False: it has been taken over.
  bool withdraw(const Operation& operation);

  // Advances everything under way once, unless another thread is just doing so.
  void poll();

  // Helps until `complete()` is true; the thread stands back meanwhile. For waits that end with
  // an operation of a Worker only, `sleep()` may block instead where nothing is under way here.
  template <class Complete, class Sleep>
  void drive_until(Complete complete, Sleep sleep);

  // Brings an operation in the caller's hand to its end: `advance(polls)` goes on with it as
  // an Execution does, and says whether it is over.
  template <class Advance>
  void drive_in_hand(Advance advance);
  // For a caller that waits for another process: how often to look before yield_core(). Once in so
  // many waits the library is asked, too: a program whose calls all end in memory makes no other
  // call in which the library could move its messages.
  int polls_in_hand() {
    constexpr int kOnOwnCore = 500, kOnSharedCore = 2;
    constexpr unsigned kWaitsPerCall = 64;
    const unsigned waits = waits_in_hand_.load(std::memory_order_relaxed) + 1;
    waits_in_hand_.store(waits, std::memory_order_relaxed);
    if (waits % kWaitsPerCall == 0) [[unlikely]]
      observer_.keep_library_going();
    return shared_core_.load(std::memory_order_relaxed) > 0 ? kOnSharedCore : kOnOwnCore;
  }
  // The same of operations that are left to callers.
  void go_on_with_callers_own() {
    if (under_way() > 0) [[unlikely]]
      poll_callers_own();
  }
  void poll_callers_own();
  // Lets others run, and learns from how long that took whether anybody wanted to.
  void yield_core();

  // Around a call that may block in the MPI library: the thread takes over operations in which
  // other ranks wait for this rank's later rounds (the library itself moves what is posted); also
  // those, and the parts of others, that are left to callers, as long as the caller is blocked, and
  // those that another caller submits meanwhile. caller_returns only where caller_blocks said true.
  bool caller_blocks();
  void caller_returns();
  // Lives where it has said true.
  class Blocked {
   public:
    explicit Blocked(Progress& progress) : progress_(progress) {}
    ~Blocked() { progress_.caller_returns(); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

   private:
    Progress& progress_;
  };

  // So many transfers of the application's are left to the thread, which looks after them from time
  // to time; or, negative, a caller has come for so many. started: of these, so many have just
  // begun; opened: so often others may begin some from now on; exposed: so many are no more than
  // that.
  void leave_transfers(int change, std::uint32_t started = 0, std::uint32_t opened = 0,
                       int exposed = 0);

  int under_way() const { return under_way_.load(std::memory_order_relaxed); }

  // Ends the thread; what is under way stays as it is. For finalize and exit.
  void stop();

 private:
  enum class Who : std::uint8_t { caller, thread };
  struct Entry {
    std::shared_ptr<Operation> operation;
    bool wants_thread = false;
    bool offered = false;     // only in inbox_
    bool over = false;        // only its end is left
    int order = Desk::kNone;  // the agent has it
  };

  void add(Entry entry);
  void count(const Entry& entry, int change);
  void count_for_thread(const Entry& entry, int change);
  void leave_to_callers(Entry& entry);
  bool is_back(Who who, Entry& entry);
  bool take_back(Entry& entry);
  void take_all_back();
  // A caller that helps. It may pause: a sleeping one helps nobody, and what other callers start
  // meanwhile is the thread's.
  class Helping {
   public:
    explicit Helping(Progress& progress) : progress_(progress) { go_on(); }
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
    void go_on() {
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
    bool progressed = false;    // an operation went on by at least a round
    bool hides_rounds = false;  // one that is left may have gone on unseen
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
  std::atomic<unsigned> waits_in_hand_{0};  // about so many, where several callers wait
  Observer& observer_;

  // Begins where the lock is had, and ends before it is let go.
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
  std::optional<Desk> desk_;
  std::uint32_t looks_at_orders_ = 0;  // by whoever holds advancing_
  std::atomic<std::int64_t> ended_by_agent_{0};
  Waiting waiting_;  // of the thread
  Thread thread_;
};

// Out of the way of those that need not wait.
template <class Complete, class Sleep>
[[gnu::noinline]] void Progress::drive_until(Complete complete, Sleep sleep) {
  constexpr int kPollsOnOwnCore = 64, kPollsOnSharedCore = 2, kPollsPerCall = 16;
  Lasting<Helping> helping(*this);
  for (int polls = 0; !complete(); ++polls) {
    if (polls % kPollsPerCall == kPollsPerCall - 1) observer_.keep_library_going();
    if (under_way() > 0) {
      poll();
      if (polls >= (shared_core_ > 0 ? kPollsOnSharedCore : kPollsOnOwnCore)) yield_core();
    } else {
      helping->pause();
      sleep();
      helping->go_on();
    }
  }
}

template <class Advance>
void Progress::drive_in_hand(Advance advance) {
  if (advance(polls_in_hand())) return;
  drive_until([&] { return advance(1); }, [&] { yield_core(); });
}

}  // namespace weft
