// Records in which MPI call each application thread waits. The watchdog's thread looks at these
// records and at the incomplete collectives from time to time. It reports each standstill once.
#include "runtime/request/watchdog.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/this_thread.h"
#include "engine/thread.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

std::atomic<bool> watching{false};

namespace {

// The largest number of collectives in a report, and of other ranks that are named for a
// collective.
constexpr std::size_t kMostTold = 8;

// The MPI call in which an application thread is. That thread writes it, and the watchdog's thread
// reads it.
struct Place {
  std::atomic<int> call{-1};              // -1 if the thread is in no call that may wait
  std::atomic<std::int64_t> since_ns{0};  // must be written before `call`
  bool taken = false;
};

struct Wait {
  CallId call;
  std::int64_t since_ns;
};

class Watchdog {
 public:
  void start(int seconds, int rank);
  void stop();
  Place* take_place();
  void give_back(Place* place);

 private:
  struct Standstill {
    std::uint32_t round;
    std::int64_t since_ns;
    bool told;
  };
  using Operations = std::vector<std::shared_ptr<CollectiveOperation>>;

  void run();
  void look(std::int64_t now);
  bool long_enough(std::int64_t since_ns, std::int64_t now) const;
  std::vector<Wait> long_waits(std::int64_t now);
  // Returns the incomplete collectives. Sets `fresh` to true if one of them has made no progress
  // for too long, and was not reported yet.
  Operations unfinished(std::int64_t now, bool& fresh);
  void tell(const std::vector<Wait>& waits, const Operations& operations, std::int64_t now);

  std::mutex mutex_;          // guards places_ and stopping_
  std::deque<Place> places_;  // never shrinks, since threads keep pointers to entries
  bool stopping_ = false;
  std::condition_variable changed_;
  Thread thread_;
  int seconds_ = 0, rank_ = 0;
  // Waits that were reported already, by the time at which they began.
  std::set<std::int64_t> told_waits_;
  std::map<const CollectiveOperation*, Standstill> standstills_;
};

// Returns the only object of this process. It is never destroyed, since threads may use it while
// the process exits.
Watchdog& watchdog() {
  static auto* instance = new Watchdog;
  return *instance;
}

// A thread's entry in the table of application threads. The destructor gives it back when the
// thread ends. Afterwards, a call that was left by longjmp() may still be marked as ended; that
// then changes a dummy entry.
struct OwnPlace {
  Place* place = watchdog().take_place();
  ~OwnPlace() {
    static Place nobodys;
    watchdog().give_back(std::exchange(place, &nobodys));
  }
};

Place& own_place() {
  static thread_local OwnPlace own;
  return *own.place;
}

std::string list(const char* what, const std::set<int>& ranks) {
  if (ranks.empty()) return "";
  std::string text = std::string(", ") + what;
  std::size_t told = 0;
  for (const int rank : ranks) {
    if (told++ == kMostTold)
      return text + " and " + std::to_string(ranks.size() - kMostTold) + " more";
    text += (told > 1 ? ", " : " ") + std::to_string(rank);
  }
  return text;
}

// Returns as words what the current round of a collective waits for.
std::string where(const Schedule& schedule, std::uint32_t round) {
  if (schedule.next_batch && round >= schedule.rounds())
    return ", round " + std::to_string(round + 1);
  if (round >= schedule.rounds()) return ", at its end";
  std::set<int> from, to, awaited;
  bool in_library = false, calls_leaders = false;
  for (std::uint32_t i = round ? schedule.round_ends[round - 1] : 0; i < schedule.round_ends[round];
       ++i) {
    const Step& step = schedule.steps[i];
    if (step.kind == StepKind::recv) from.insert(step.peer);
    if (step.kind == StepKind::send) to.insert(step.peer);
    if (step.kind == StepKind::wait) awaited.insert(step.peer);
    if (is_library(step.kind)) in_library = true;
    if (step.kind == StepKind::leaders) calls_leaders = true;
  }
  if (in_library) return ", inside the MPI library";
  return ", round " + std::to_string(round + 1) +
         (schedule.next_batch ? "" : " of " + std::to_string(schedule.rounds())) +
         list("receives from rank", from) + list("sends to rank", to) +
         list("waits in shared memory for rank", awaited) +
         (calls_leaders ? ", in the MPI library's collective of the nodes' leaders" : "");
}

std::string describe(CollectiveOperation& operation) {
  const Communicator& communicator = operation.communicator();
  const std::string name = communicator.number == 0
                               ? "MPI_COMM_WORLD"
                               : "communicator " + std::to_string(communicator.number);
  return std::string("\n  ") + call_name(operation.id()) + ", collective " +
         std::to_string(operation.number()) + " on " + name + " (as rank " +
         std::to_string(communicator.rank) + " of " + std::to_string(communicator.size) + ")" +
         where(operation.under_way(), operation.round());
}

Place* Watchdog::take_place() {
  const std::lock_guard lock(mutex_);
  for (Place& place : places_) {
    if (place.taken) continue;
    place.taken = true;
    return &place;
  }
  places_.emplace_back().taken = true;
  return &places_.back();
}

void Watchdog::give_back(Place* place) {
  const std::lock_guard lock(mutex_);
  place->call.store(-1, std::memory_order_relaxed);
  place->taken = false;
}

void Watchdog::start(int seconds, int rank) {
  seconds_ = seconds;
  rank_ = rank;
  const auto started = thread_.start([this] { run(); });
  if (started)
    watching.store(true);
  else
    say("rank " + std::to_string(rank) + " gets no watchdog (" + started.error().message +
        "); raise 'ulimit -u' to get one");
}

void Watchdog::stop() {
  if (!thread_.is_started()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  watching.store(false);
}

void Watchdog::run() {
  this_thread.is = kInside;
  pthread_setname_np(pthread_self(), "weft-watchdog");
  const auto period = std::chrono::milliseconds(std::min(250 * seconds_, 1000));
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [this] { return stopping_; })) {
    lock.unlock();
    look(now_ns());
    lock.lock();
  }
}

bool Watchdog::long_enough(std::int64_t since_ns, std::int64_t now) const {
  return now - since_ns >= std::int64_t{1'000'000'000} * seconds_;
}

std::vector<Wait> Watchdog::long_waits(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  std::vector<Wait> waits;
  for (const Place& place : places_) {
    const int call = place.call.load(std::memory_order_acquire);
    const std::int64_t since_ns = place.since_ns.load(std::memory_order_relaxed);
    if (call >= 0 && long_enough(since_ns, now))
      waits.push_back({static_cast<CallId>(call), since_ns});
  }
  return waits;
}

Watchdog::Operations Watchdog::unfinished(std::int64_t now, bool& fresh) {
  Runtime* runtime = Runtime::active();
  Operations operations;
  if (runtime) operations = Requests::own().all();
  std::erase_if(operations, [](const auto& operation) { return operation->done(); });
  std::sort(operations.begin(), operations.end(), [](const auto& left, const auto& right) {
    const auto key = [](CollectiveOperation& o) {
      return std::pair(o.communicator().number, o.number());
    };
    return key(*left) < key(*right);
  });
  std::map<const CollectiveOperation*, Standstill> before;
  before.swap(standstills_);
  for (const auto& operation : operations) {
    const std::uint32_t round = operation->round();
    const auto known = before.find(operation.get());
    const bool stands = known != before.end() && known->second.round == round;
    Standstill& now_known = standstills_[operation.get()];
    now_known = stands ? known->second : Standstill{round, now, false};
    if (now_known.told || !long_enough(now_known.since_ns, now)) continue;
    now_known.told = fresh = true;
  }
  return operations;
}

void Watchdog::look(std::int64_t now) {
  bool stands = false, fresh = false;
  const auto operations = unfinished(now, stands);
  const auto waits = long_waits(now);
  if (waits.empty()) fresh = stands;
  for (const Wait& wait : waits) fresh = told_waits_.insert(wait.since_ns).second || fresh;
  if (waits.empty()) told_waits_.clear();
  if (fresh) tell(waits, operations, now);
}

void Watchdog::tell(const std::vector<Wait>& waits, const Operations& operations,
                    std::int64_t now) {
  std::string text = "watchdog: rank " + std::to_string(rank_);
  if (waits.empty()) text += " is in no call that waits";
  for (std::size_t i = 0; i < waits.size(); ++i)
    text += (i ? ", and " : " has waited in ") + std::string(call_name(waits[i].call)) + " for " +
            std::to_string((now - waits[i].since_ns) / 1'000'000'000) + " s";
  text += operations.empty() ? "; it has no unfinished collective of Weft's"
                             : "; its unfinished collectives:";
  for (std::size_t i = 0; i < std::min(operations.size(), kMostTold); ++i)
    text += describe(*operations[i]);
  if (operations.size() > kMostTold)
    text += "\n  and " + std::to_string(operations.size() - kMostTold) + " more";
  say(text);
}

}  // namespace

void start_watchdog(int seconds, int rank) {
  watchdog().start(seconds, rank);
}

void stop_watchdog() {
  if (watching.load()) watchdog().stop();
}

WatchedCall::Entered::Entered(CallId id) {
  Place& place = own_place();
  place.since_ns.store(now_ns(), std::memory_order_relaxed);
  place.call.store(static_cast<int>(id), std::memory_order_release);
}

WatchedCall::Entered::~Entered() {
  own_place().call.store(-1, std::memory_order_release);
}

}  // namespace weft
