#include "gpu/agent.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace weft::gpu {
namespace {

using std::chrono::microseconds;

// The agent polls without sleeping for this long after the last event: kForLong if graphs contain
// collectives, whose launches are not announced to this process, or if an MPI call is in progress,
// which may need further calls to progress; otherwise kShortly. After that it sleeps between polls,
// each time for an eighth of the time for which it has been idle, within the limits below.
constexpr auto kShortly = std::chrono::milliseconds(1), kForLong = std::chrono::milliseconds(50);
constexpr auto kShortestNap = microseconds(20), kLongestNap = microseconds(200);
// Time between two checks whether a rank has given up a collective that kernels carry out.
constexpr auto kBetweenLooks = std::chrono::milliseconds(10);

// Starts a thread with all signals blocked, since signals belong to the application.
std::thread without_signals(void (*body)(void*), void* data) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made(body, data);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

}  // namespace

void Agent::add(Operation* operation) {
  const std::lock_guard lock(mutex_);
  arrived_.push_back(operation);
  begin();
}

void Agent::keep(Operation* operation) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(operation);
  begin();
}

void Agent::begin() {
  if (!thread_.joinable()) {
    thread_ = without_signals([](void* self) { static_cast<Agent*>(self)->run(); }, this);
  }
  called_.notify_one();
}

void Agent::forget(Operation* operation) {
  const std::lock_guard lock(mutex_);
  operation->fail_if_given_up();
  kept_.erase(std::remove(kept_.begin(), kept_.end(), operation), kept_.end());
  operation->left_.store(true, std::memory_order_release);
}

int Agent::stop(std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    latest_ = Clock::now() + patience;
    called_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  return std::exchange(not_ended_, 0);
}

// Ends all operations when the agent stops. It runs on the agent's thread, where it may make
// devices current, and may make the calls that a stream capture forbids.
void Agent::end() {
  end_what_was_enqueued();
  for (Operation* one : watched_) {
    if (!idle(*one)) ++not_ended_;
    one->fail({"MPI has been finalised"}, false);
    // The operation's own copies are waited for first; they end soon.
    while (!one->collective_->has_released_buffers()) std::this_thread::yield();
    give_up(*one);
    one->left_.store(true, std::memory_order_release);
  }
  watched_.clear();
  const std::lock_guard lock(mutex_);
  for (Operation* one : kept_) {
    one->fail_if_given_up();
    const bool passed = has_passed(*one);
    if (!passed) ++not_ended_;
    one->fail({"MPI has been finalised"}, false);
    // An NCCL communicator that is at rest stays, since graphs may still use it.
    if (!passed || !one->is_by_nccl()) give_up(*one);
    one->left_.store(true, std::memory_order_release);
  }
  kept_.clear();
}

bool Agent::has_passed(const Operation& operation) {
  operation.context_->make_current();
  return operation.streams_have_passed();
}

void Agent::end_what_was_enqueued() {
  // The streams of an operation are checked first: once they have completed, the operation is not
  // started again.
  const auto has_ended = [](Operation* one) {
    return one->failed_.load(std::memory_order_acquire) || (has_passed(*one) && idle(*one));
  };
  const auto needs_nothing = [](Operation* one) {
    return one->failed_.load(std::memory_order_acquire) || has_passed(*one);
  };
  const std::lock_guard lock(mutex_);
  watched_.insert(watched_.end(), arrived_.begin(), arrived_.end());
  arrived_.clear();
  while (Clock::now() < latest_ && (!std::all_of(watched_.begin(), watched_.end(), has_ended) ||
                                    !std::all_of(kept_.begin(), kept_.end(), needs_nothing))) {
    scan();
    look_at_kept(Clock::now());
    std::this_thread::yield();
  }
}

void Agent::run() {
  auto last_change = Clock::now();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (watched_.empty()) {
        wait_for_work(lock);
        last_change = Clock::now();
      }
      if (stopping_) break;
      watched_.insert(watched_.end(), arrived_.begin(), arrived_.end());
      arrived_.clear();
      look_at_kept(Clock::now());
    }
    const auto now = Clock::now();
    if (scan() || expected_.exchange(false, std::memory_order_relaxed)) last_change = now;
    const auto idle = std::chrono::duration_cast<microseconds>(now - last_change);
    const auto sleeping = nap(idle, under_way_ || has_graphs());
    if (sleeping == microseconds::zero()) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleeping);
    }
  }
  end();
}

microseconds Agent::nap(microseconds idle, bool attentive) {
  if (idle < (attentive ? kForLong : kShortly)) return microseconds::zero();
  return std::clamp(idle / 8, kShortestNap, kLongestNap);
}

void Agent::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto called = [this] { return stopping_ || !arrived_.empty(); };
  if (kept_.empty()) {
    called_.wait(lock, [&] { return called() || !kept_.empty(); });
  } else {
    called_.wait_for(lock, kBetweenLooks, called);
  }
}

// Gives up the operations of kernels that another rank has given up, since this rank may have no
// running kernel that notices. A kernel that already has all data still completes, since it looks
// for the data first. Operations by NCCL are given up after an error.
void Agent::look_at_kept(Clock::time_point now) {
  if (now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  for (Operation* one : kept_) {
    if (one->is_lost()) give_up(*one);
  }
}

// Advances every operation once. Returns whether any of them has progressed.
bool Agent::scan() {
  bool changed = false;
  under_way_ = false;
  not_ready_.clear();
  for (Operation* one : watched_) {
    bool in_turn = true;
    if (one->order_) {
      in_turn =
          std::find(not_ready_.begin(), not_ready_.end(), one->order_.get()) == not_ready_.end();
      // An operation whose chunks have all started continues even if an earlier collective of its
      // communicator has failed.
      const bool has_started =
          one->begun_ == one->chunks_.size() && one->collective_->lets_next_start();
      if (!has_started && one->order_->is_broken_for(one->number_)) {
        one->fail({"an earlier collective on this communicator has failed"}, false);
      }
    }
    changed = advance(*one, &in_turn) || changed;
    if (one->order_ && !in_turn) not_ready_.push_back(one->order_.get());
  }
  const auto leaves = [](Operation* one) {
    if (!one->leaving_.load(std::memory_order_acquire) || !idle(*one)) return false;
    // An operation that has failed since it was advanced stays, so that the next scan releases its
    // waiters first.
    if (one->failed_.load(std::memory_order_acquire) && !one->given_up_) return false;
    // The operation may be deleted as soon as this is stored.
    one->left_.store(true, std::memory_order_release);
    return true;
  };
  watched_.erase(std::remove_if(watched_.begin(), watched_.end(), leaves), watched_.end());
  return changed;
}

// Advances one operation; returns whether it has progressed. in_turn: before the call, whether
// chunks of this operation may start; after it, whether chunks of the next operation on the same
// communicator may.
bool Agent::advance(Operation& operation, bool* in_turn) {
  if (!operation.given_up_ && operation.failed_.load(std::memory_order_acquire) &&
      operation.collective_->has_released_buffers()) {
    give_up(operation);
  }
  bool changed = false;
  for (std::size_t chunk = 0; chunk < operation.chunks_.size(); ++chunk) {
    const bool may_start = !operation.order_ || (*in_turn && chunk <= operation.begun_);
    changed = advance_chunk(operation, chunk, may_start) || changed;
  }
  const bool all_started =
      operation.begun_ == operation.chunks_.size() && operation.collective_->lets_next_start();
  *in_turn = *in_turn && (all_started || operation.given_up_);
  return changed;
}

bool Agent::advance_chunk(Operation& operation, std::size_t chunk, bool may_start) {
  Operation::Progress& progress = operation.progress_[chunk];
  HostFlags& flags = *operation.holdings_.channels[chunk].host;
  const auto has_failed = [&] { return operation.failed_.load(std::memory_order_acquire); };
  bool changed = false;
  if (progress.active) {
    const auto ended = operation.collective_->test(chunk);
    if (!ended) operation.fail(ended.error());
    if (!ended || *ended) {
      progress.active = false, changed = true;
      if (!has_failed()) weft_device_store(&flags.done, progress.seen);
    }
    under_way_ = under_way_ || progress.active;
  }
  const std::uint64_t ready = weft_device_load(&flags.ready);
  if (ready == progress.seen) return changed;
  if (has_failed()) {
    progress.seen = ready;
    return true;
  }
  if (progress.active || ready > progress.seen + 1) {
    operation.fail({"a collective was started again before it had been waited for"});
    return true;
  }
  if (!may_start) return changed;
  const auto started = operation.collective_->start(chunk);
  if (started && !*started) return changed;
  progress.seen = ready;
  ++operation.begun_;
  progress.active = static_cast<bool>(started);
  if (!started) operation.fail(started.error());
  return true;
}

// Marks the operation as given up, so that streams which wait for it, now or later, do not block.
void Agent::give_up(Operation& operation) {
  if (operation.given_up_) return;
  operation.given_up_ = true;
  if (operation.is_by_nccl()) {
    operation.context_->make_current();
    operation.by_nccl_.comm->abort();
  }
  for (const Channel& one : operation.holdings_.channels) {
    weft_device_store(&one.host->done, WEFT_GPU_GIVEN_UP);
  }
}

bool Agent::idle(Operation& operation) {
  for (std::size_t chunk = 0; chunk < operation.chunks_.size(); ++chunk) {
    const auto& progress = operation.progress_[chunk];
    const HostFlags& flags = *operation.holdings_.channels[chunk].host;
    if (progress.active || weft_device_load(&flags.ready) != progress.seen) return false;
  }
  return operation.collective_->is_quiet();
}

}  // namespace weft::gpu
