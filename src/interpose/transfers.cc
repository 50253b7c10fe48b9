// A request has one holder at a time: the thread, which looks at it, or a call of the
// application's, which may free it.
#include "interpose/transfers.h"

#include <sched.h>

#include <algorithm>
#include <limits>

#include "interpose/generated/library_calls.h"
#include "interpose/runtime.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {

constinit thread_local KnownTypes known_types __attribute__((tls_model("initial-exec"))) = {};

bool is_large(std::int64_t count, MPI_Datatype type) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::int64_t least = least_transfer_bytes.load();
  if (known_types.epoch != epoch()) known_types = {epoch(), {}};
  KnownTypes::Known& known = known_types.at(type);
  if (known.type != type || known.least_count == 0) {
    int bytes = 0;
    // MPI_UNDEFINED: more than an int holds.
    if (type != handles.datatype_null) library_calls.Type_size(type, &bytes);
    const std::int64_t least_count = bytes > 0 ? (least - 1) / bytes + 1 : bytes < 0 ? 1 : kMost;
    known = {type, static_cast<int>(std::min(least_count, kMost))};
  }
  return least != kNoTransfers && count >= known.least_count;
}

void Transfers::leave(MPI_Request request, Transfer& transfer) {
  transfer.state = State::left;
  transfer.place = left_.size();
  left_.push_back(request);
  progress_.leave_transfers(1);
}

void Transfers::take_back(Transfer& transfer) {
  if (transfer.state != State::left) return;
  const MPI_Request moved = left_.back();
  left_[transfer.place] = moved;
  find(moved)->place = transfer.place;
  left_.pop_back();
  progress_.leave_transfers(-1);
}

void Transfers::turn_idle(MPI_Request request, Transfer& transfer) {
  take_back(transfer);
  if (transfer.state != State::idle) active_transfers.fetch_sub(1);
  transfer.state = State::idle;
  if (transfer.persistent) return;
  transfers_.erase(request);
  known_transfers.fetch_sub(1);
}

Transfers::Transfer* Transfers::find(MPI_Request request) {
  const auto found = transfers_.find(request);
  return found == transfers_.end() ? nullptr : &found->second;
}

// A look takes no longer than one call that does not wait.
Transfers::Transfer* Transfers::find_unlooked_at(Lock& lock, MPI_Request request) {
  while (looks_ && looked_at_ == request) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  return find(request);
}

bool Transfers::knows(MPI_Request request) {
  const Lock lock(mutex_);
  return find(request) != nullptr;
}

void Transfers::started(MPI_Request request) {
  const Lock lock(mutex_);
  const auto [at, is_new] = transfers_.try_emplace(request);
  if (is_new) known_transfers.fetch_add(1);
  if (at->second.state != State::idle) return;
  active_transfers.fetch_add(1);
  started_.fetch_add(1, std::memory_order_relaxed);
  leave(request, at->second);
}

void Transfers::initialised(MPI_Request request) {
  const Lock lock(mutex_);
  if (transfers_.insert_or_assign(request, Transfer{true}).second) known_transfers.fetch_add(1);
}

void Transfers::started_again(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (knows(requests[i])) started(requests[i]);
}

void Transfers::cancelled(MPI_Request request) {
  Lock lock(mutex_);
  if (Transfer* const transfer = find_unlooked_at(lock, request)) turn_idle(request, *transfer);
}

void Transfers::freed(MPI_Request request) {
  Lock lock(mutex_);
  Transfer* const transfer = find_unlooked_at(lock, request);
  if (!transfer) return;
  transfer->persistent = false;
  turn_idle(request, *transfer);
}

bool Transfers::take(MPI_Request request) {
  Lock lock(mutex_);
  Transfer* const transfer = find_unlooked_at(lock, request);
  if (!transfer || transfer->state != State::left) return false;
  take_back(*transfer);
  transfer->state = State::in_hand;
  return true;
}

void Transfers::give_back(MPI_Request request, bool completed) {
  const Lock lock(mutex_);
  Transfer* const transfer = find(request);
  if (!transfer || transfer->state != State::in_hand) return;
  if (completed)
    turn_idle(request, *transfer);
  else
    leave(request, *transfer);
}

// One that has not ended has given the library its time.
bool Transfers::look() {
  Lock lock(mutex_);
  bool one_has_ended = false;
  int complete = 1;
  while (complete && !left_.empty()) {
    next_ = (next_ + 1) % left_.size();
    looked_at_ = left_[next_];
    looks_ = true;
    lock.unlock();
    if (library_calls.Request_get_status(looked_at_, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      complete = 1;  // whatever it is, it is the application's
    lock.lock();
    looks_ = false;
    if (!complete) break;
    turn_idle(looked_at_, *find(looked_at_));
    ended_.fetch_add(1, std::memory_order_relaxed);
    one_has_ended = true;
  }
  return one_has_ended;
}

void transfer_started(MPI_Request request) {
  if (Runtime* runtime = Runtime::active()) runtime->transfers.started(request);
}

void transfer_initialised(MPI_Request request) {
  if (Runtime* runtime = Runtime::active()) runtime->transfers.initialised(request);
}

void TransfersInHand::take(int count, const MPI_Request* requests) {
  Runtime* runtime = Runtime::active();
  for (int i = 0; runtime && i < count; ++i) {
    if (!runtime->transfers.take(requests[i])) continue;
    if (!taken_) taken_ = std::make_unique<std::vector<Taken>>();
    taken_->push_back({requests[i], i});
  }
}

void TransfersInHand::give_back(bool all, int count, const int* indices) {
  Runtime* runtime = Runtime::active();
  const int n = std::max(count, 0);  // MPI_UNDEFINED: none
  for (const auto& [request, index] : *taken_)
    if (runtime)
      runtime->transfers.give_back(request,
                                   all || std::find(indices, indices + n, index) != indices + n);
  taken_.reset();
}

}  // namespace weft::interpose
