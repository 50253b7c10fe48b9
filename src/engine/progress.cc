// Implements Progress: advances the operations in progress, by application threads inside MPI calls
// and by the progress thread.
#include "engine/progress.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace weft {
namespace {

// Nanoseconds by which the kernel may end a sleep of the progress thread too late. The kernel's
// default of 50 us is longer than many of the sleeps.
constexpr unsigned long kTimerSlack_ns = 1000;

// Returns whether the kernel has given the core to another thread since the calling thread last
// called this function.
bool has_been_switched() {
  static thread_local long seen = 0;
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return std::exchange(seen, usage.ru_nivcsw) != usage.ru_nivcsw;
}

}  // namespace

Progress::Progress(BackOff backoff, ThreadMay thread_may, Observer& observer)
    : thread_may_(thread_may), observer_(observer), waiting_(backoff) {}

Progress::~Progress() {
  stop();
}

void Progress::submit(std::shared_ptr<Operation> operation, bool wants_thread) {
  add({std::move(operation), wants_thread});
  if (!wants_thread && blocked_.load() == 0) return;
  ensure_thread();
  wake_thread();
}

void Progress::serve(CoreAgent& agent) {
  sleeper_.words.use(agent.wake(), agent.asleep(), FutexOf::processes);
  agent_ = &agent;
}

void Progress::use(Mailbox mailbox) {
  if (!agent_) sleeper_.words.use(mailbox.wake(), mailbox.asleep(), FutexOf::processes);
  mailbox_ = std::move(mailbox);
}

bool Progress::leave_to_agent(const std::shared_ptr<Operation>& operation, const Work& work) {
  operation->compute_as_here();
  const std::lock_guard lock(inbox_mutex_);
  const int command = stopping_.load() ? Mailbox::kNone : mailbox_->leave(work);
  if (command == Mailbox::kNone) return false;
  inbox_.push_back({.operation = operation, .wants_thread = true, .command = command});
  count(inbox_.back(), 1);
  return true;
}

void Progress::offer(std::shared_ptr<Operation> operation) {
  add({std::move(operation), false, true});
}

bool Progress::withdraw(const Operation& operation) {
  const std::lock_guard lock(inbox_mutex_);
  const auto found = std::find_if(inbox_.begin(), inbox_.end(), [&](const Entry& entry) {
    return entry.operation.get() == &operation;
  });
  if (found == inbox_.end()) return false;
  count(*found, -1);
  inbox_.erase(found);
  return true;
}

void Progress::add(Entry entry) {
  entry.operation->compute_as_here();
  count(entry, 1);
  const std::lock_guard lock(inbox_mutex_);
  inbox_.push_back(std::move(entry));
}

void Progress::count(const Entry& entry, int change) {
  under_way_.fetch_add(change);
  if (!entry.over && entry.command == Mailbox::kNone) count_for_thread(entry, change);
}

void Progress::count_for_thread(const Entry& entry, int change) {
  if (entry.wants_thread) for_thread_.fetch_add(change);
  if (entry.operation->is_awaited()) awaited_.fetch_add(change);
  if (entry.operation->by_callers()) by_callers_.fetch_add(change);
}

// Leaves the remaining rounds of an operation to application threads. If all its steps are done, or
// if the core agent has it, it no longer counts for the progress thread, so it is subtracted only
// otherwise.
void Progress::leave_to_callers(Entry& entry) {
  if (!entry.over && entry.command == Mailbox::kNone) for_thread_.fetch_sub(1);
  entry.wants_thread = false;
  tell_waiting();
}

// Returns whether the core agent is at work, and the agent and the progress thread have all
// operations of this process, so that an application thread has nothing to do but wait.
bool Progress::others_do_all() const {
  // Without operations the caller waits for a Worker, which wakes it by other means.
  if (under_way_.load() == 0) return false;
  const bool agent_works = mailbox_->open() > 0 || (agent_ && agent_->has_commands());
  const bool thread_works = thread_may_.load() == ThreadMay::do_all && !stopping_.load();
  return agent_works && thread_works && by_callers_.load() == 0 &&
         mailbox_->open() + for_thread_.load() == under_way_.load();
}

void Progress::poll_callers_own() {
  if (under_way() > for_thread_.load(std::memory_order_relaxed)) poll();
}

void Progress::poll() {
  if (under_way() > 0) try_advance_all(Who::caller);
}

std::optional<Progress::Found> Progress::try_advance_all(Who who) {
  const std::unique_lock lock(advancing_, std::try_to_lock);
  if (!lock) return std::nullopt;
  advancing_duty_.begin();
  const Found found = advance_all(who);
  advancing_duty_.end();
  return found;
}

// Ends an advance that will never return, because the application's reduction operator has left it
// by longjmp or has ended its thread. That thread still holds the lock. The operation that called
// the operator fails.
void Progress::advance_was_left() {
  {
    const std::lock_guard lock(advancing_, std::adopt_lock);
    if (at_ < active_.size()) {
      active_[at_].operation->was_left();
      count(active_[at_], -1);
      active_[at_].operation.reset();
    }
    std::erase_if(active_, [](const Entry& entry) { return !entry.operation; });
    at_ = kNowhere;
  }
  wake_thread();
}

// Returns whether this process has the operation again, which it had left to the core agent. Takes
// the operation back if a caller waits for it and may not sleep meanwhile. Checks now and then
// whether the agent has ended.
bool Progress::is_back(Who who, Entry& entry) {
  constexpr std::uint32_t kLooksPerQuestion = 256;
  if (mailbox_->is_under_way(entry.command)) {
    const bool waits = who == Who::caller && !sleeps_in_waits_ && entry.operation->wanted();
    const bool ask = ++looks_at_commands_ % kLooksPerQuestion == 0;
    if (!waits && !(ask && mailbox_->agent_has_ended())) return false;
  }
  if (!take_back(entry)) observer_.agent_has_ended();
  return entry.command == Mailbox::kNone;
}

// Takes an operation back from the core agent. Returns false if the agent ended while it carried
// the operation out.
bool Progress::take_back(Entry& entry) {
  const auto rest = mailbox_->take(entry.command);
  if (!rest) return false;
  entry.command = Mailbox::kNone;
  entry.over = rest->over;
  if (rest->over) {
    entry.operation->is_over();
    ended_by_agent_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  const Program& program = entry.operation->schedule().program;
  entry.operation->has_gone_on(rest->begun, program[rest->next].step);
  count_for_thread(entry, 1);
  return true;
}

// Takes all operations back from the core agent if it gets the lock. It gives up after some tries,
// since the MPI library may exit the process from the very thread that holds the lock.
void Progress::take_all_back() {
  constexpr int kTries = 1000;
  std::unique_lock lock(advancing_, std::defer_lock);
  for (int tries = 0; tries < kTries && !lock.try_lock(); ++tries) sched_yield();
  if (!lock) return;
  const std::lock_guard inbox_lock(inbox_mutex_);
  for (auto* entries : {&active_, &inbox_})
    for (Entry& entry : *entries)
      if (entry.command != Mailbox::kNone) take_back(entry);
}

// Advances an operation as far as `who` may. Returns true once it is complete.
bool Progress::advance(Who who, Entry& entry) {
  if (entry.command != Mailbox::kNone && !is_back(who, entry)) return false;
  const ComputesAs caller(entry.operation->computes_as());
  if (who == Who::caller || (thread_may_.load() == ThreadMay::do_all && blocked_.load() > 0))
    return entry.operation->advance();
  if (thread_may_.load() == ThreadMay::do_all) return entry.operation->advance_threads_part();
  const bool may = entry.operation->in_memory() && !entry.over;
  if (may && entry.operation->advance_to_the_end()) {
    count_for_thread(entry, -1);
    entry.over = true;
  }
  return false;
}

// Advances all operations once. The calling thread must hold advancing_.
Progress::Found Progress::advance_all(Who who) {
  {
    const std::lock_guard lock(inbox_mutex_);
    for (auto& entry : inbox_) {
      if (entry.offered) entry.operation->taken_over();
      active_.push_back(std::move(entry));
    }
    inbox_.clear();
  }
  Found found;
  std::size_t kept = 0;
  const auto keep = [&](Entry& entry) {
    if (&active_[kept] != &entry) active_[kept] = std::move(entry);
    ++kept;
  };
  for (at_ = 0; at_ < active_.size(); ++at_) {
    Entry& entry = active_[at_];
    if (!may_advance(*entry.operation, who)) {
      keep(entry);
      continue;
    }
    const auto round = entry.operation->round();
    const bool done = advance(who, entry);
    found.progressed = found.progressed || entry.operation->round() != round;
    if (entry.wants_thread && entry.operation->is_at_callers_part()) leave_to_callers(entry);
    if (!done) {
      found.hides_rounds = found.hides_rounds || entry.operation->schedule().hides_rounds();
      keep(entry);
      continue;
    }
    count(entry, -1);
    entry.operation.reset();
    if (who == Who::thread || several_callers_) tell_waiting();
  }
  at_ = kNowhere;
  active_.resize(kept);
  found.ended_round = found.progressed;
  return found;
}

// Notes that an application thread may block in the MPI library, and lets the progress thread take
// operations over. blocked_ is raised before awaited_ is read. submit() raises awaited_ before it
// reads blocked_, so at least one of the two threads sees the other.
bool Progress::caller_blocks() {
  if (!with_thread() || (awaited_.load() == 0 && !several_callers_)) return false;
  blocked_.fetch_add(1);
  if (awaited_.load() == 0) return true;
  ensure_thread();
  wake_thread();
  return true;
}

// Notes that the application thread is back. If some operations may be advanced only by application
// threads, waits until the progress thread has left the operation that it advances. That thread
// reads blocked_ before each operation.
void Progress::caller_returns() {
  blocked_.fetch_sub(1);
  if (by_callers_.load() > 0) const std::lock_guard until_it_has_ended(advancing_);
}

bool Progress::thread_has_work() const {
  return thread_has_own_work() || (agent_ && agent_->has_commands());
}

bool Progress::thread_has_own_work() const {
  if (helping_.load() > 0) return false;
  if (mailbox_ && mailbox_->some_have_returned()) return true;
  return for_thread_.load() > 0 || (blocked_.load() > 0 && awaited_.load() > 0);
}

void Progress::wake_thread() {
  sleeper_.wake_from(Asleep::dozing, [&] { return thread_has_work(); });
}

void Progress::leave_transfers(int change, std::uint32_t started, std::uint32_t opened, int exposed,
                               int answered) {
  exposed_.fetch_add(exposed, std::memory_order_relaxed);
  answered_.fetch_add(answered, std::memory_order_relaxed);
  transfers_started_.fetch_add(started, std::memory_order_relaxed);
  transfers_opened_.fetch_add(opened, std::memory_order_relaxed);
  transfers_.fetch_add(change);
  if (change > 0 || opened > 0) sleeper_.wake_from(Asleep::deeply, [] { return true; });
}

Result<bool> Progress::start(std::span<std::byte> stack) {
  const std::lock_guard lock(inbox_mutex_);
  if (refused_) return *refused_;
  if (!with_thread() || thread_.is_started() || stopping_.load()) return true;
  auto started = thread_.start([this] { thread_main(); }, stack);
  if (!started) {
    thread_may_.store(ThreadMay::nothing);
    refused_ = started.error();
  }
  return started;
}

void Progress::go_without_thread() {
  thread_may_.store(ThreadMay::nothing);
  stop();
}

void Progress::ensure_thread() {
  if (!with_thread()) return;
  if (auto started = start(); !started) say("no progress thread: " + started.error().message);
}

std::int64_t Progress::time_for_pace() const {
  return waiting_.keeps_time() ? now_ns() : 0;
}

// Runs the progress thread. It makes its system calls only after it is first woken, because many
// programs never have work for it.
void Progress::thread_main() {
  if (agent_) agent_->begin();
  rest_without_operations();
  observer_.thread_started(agent_ ? "agent" : "progress", 0);
  prctl(PR_SET_TIMERSLACK, kTimerSlack_ns);
  while (!stopping_.load()) {
    if (!thread_has_work()) {
      rest_without_operations();
      waiting_.begin(time_for_pace());
      continue;
    }
    const std::uint32_t calls_before = sleeper_.words.calls();
    const Found found = advance_as_thread();
    const int transfers = transfers_.load();
    if (transfers > 0 && waiting_.is_look_due(now_ns(), transfers, transfers_started_.load(),
                                              transfers_opened_.load(), answered_.load()))
      look_at_transfers();
    observer_.activity(found.progressed ? Activity::working : Activity::polling);
    if (found.ended_round) waiting_.progressed(time_for_pace());
    if (!found.progressed) rest_among_operations(calls_before, found.hides_rounds);
  }
  if (agent_) agent_->close();
}

// Advances this process's operations. As the agent of its core, the thread also carries out the
// operations that other ranks of the core have left to it (commands). An operation in the node's
// memory may progress without ending a round, so that the thread must poll it again at once
// (hides_rounds). An agent of all ranks of the node need not: it carries out the other ranks' steps
// itself, except those of ranks that have not begun. The length of rounds decides how long the
// thread sleeps. Commands take microseconds, and messages between nodes take milliseconds, so a
// command counts as a round only if this process has no operations of its own.
Progress::Found Progress::advance_as_thread() {
  std::optional<Found> own = Found{};
  const bool has_own = thread_has_own_work();
  if (has_own) own = try_advance_all(Who::thread);
  const bool sees_all = own && agent_ && agent_->serves_all_of_node();
  Found found = own.value_or(Found{.hides_rounds = true});
  if (!agent_) return found;
  const bool served = agent_->serve();
  found.ended_round = found.ended_round || (served && !has_own);
  found.progressed = found.progressed || served;
  if (sees_all) found.hides_rounds = false;
  return found;
}

void Progress::rest_without_operations() {
  const int transfers = transfers_.load();
  const std::uint32_t started = transfers_started_.load(), opened = transfers_opened_.load();
  const Rest rest = waiting_.without_operations(now_ns(), transfers, started, opened,
                                                exposed_.load(), answered_.load());
  const bool dozes = rest.kind == Rest::Kind::doze;
  const bool deeply = !dozes || rest.until_more;
  const auto has_news = [&] {
    if (thread_has_work() || stopping_.load() || (!dozes && transfers_.load() > 0)) return true;
    if (deeply && (transfers_.load() > transfers || transfers_started_.load() != started ||
                   transfers_opened_.load() != opened))
      return true;
    observer_.activity(Activity::asleep);
    return false;
  };
  sleeper_.sleep(deeply ? Asleep::deeply : Asleep::dozing, dozes ? rest.ns : SleepWords::kNoLimit,
                 has_news);
  if (dozes && transfers_.load() > 0) look_at_transfers();
}

void Progress::look_at_transfers() {
  observer_.activity(Activity::polling);
  const int answered = answered_.load();
  std::int64_t now = now_ns(), took_ns = 0;
  int calls = 0;
  do {
    observer_.keep_library_going();
    took_ns = now_ns() - now;
    now += took_ns;
  } while (waiting_.look_continues(++calls, now, took_ns, answered) && inbox_is_empty() &&
           !stopping_.load());
}

void Progress::rest_among_operations(std::uint32_t calls_before, bool hides_rounds) {
  const Rest rest = waiting_.among_operations(time_for_pace(), hides_rounds, transfers_.load() > 0);
  switch (rest.kind) {
    case Rest::Kind::none:
    case Rest::Kind::idle:
      return;
    case Rest::Kind::yield: {
      const std::int64_t before_ns = time_for_pace();
      sched_yield();
      waiting_.yielded(time_for_pace() - before_ns);
      return;
    }
    case Rest::Kind::sleep:
      if (agent_)
        doze(calls_before, rest.ns);
      else
        std::this_thread::sleep_for(std::chrono::nanoseconds(rest.ns));
      return;
    case Rest::Kind::doze:
      observer_.activity(Activity::asleep);
      doze(calls_before, rest.ns);
      return;
  }
}

// Sleeps for `ns` at most, and not if the thread has been called since `calls_before` was read. An
// operation submitted meanwhile is polled as often as one that has just begun.
void Progress::doze(std::uint32_t calls_before, std::int64_t ns) {
  const auto has_news = [&] {
    return stopping_.load() || !inbox_is_empty() || sleeper_.words.calls() != calls_before;
  };
  if (sleeper_.sleep(Asleep::dozing, ns, has_news)) waiting_.begin(time_for_pace());
}

bool Progress::inbox_is_empty() {
  const std::lock_guard lock(inbox_mutex_);
  return inbox_.empty();
}

// Yields the core, and finds out whether another thread has run on it. The system call for that
// takes as long as a yield, so it is made only after a slow yield, and only if the last answer is
// old.
void Progress::yield_core() {
  constexpr std::int64_t kQuick_ns = 1000;
  // Number of yields after which the core counts as unshared again.
  constexpr int kRemembered = 256;
  const std::int64_t before = now_ns();
  sched_yield();
  const int shared = shared_core_.load(std::memory_order_relaxed);
  const bool worth_asking = now_ns() - before > kQuick_ns && shared <= kRemembered / 2;
  const bool somebody_ran = worth_asking && has_been_switched();
  shared_core_.store(somebody_ran ? kRemembered : std::max(shared - 1, 0),
                     std::memory_order_relaxed);
}

void Progress::stop() {
  stopping_.store(true);
  sleeper_.call();
  // The MPI library may exit the process from the progress thread, which cannot join itself.
  const bool from_inside = thread_.is_this_one();
  if (agent_ && from_inside) agent_->close();
  if (mailbox_ && !from_inside) take_all_back();
  if (thread_.is_started() && !from_inside) thread_.join();
}

}  // namespace weft
