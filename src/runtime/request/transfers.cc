// Records the application's active messages and file accesses, if they are large. They are recorded
// by their request handles, so that any call may complete them.
#include "runtime/request/transfers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"

namespace weft {

constinit thread_local KnownTypes known_types __attribute__((tls_model("initial-exec"))) = {};

bool is_large(std::int64_t count, MPI_Datatype type) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::int64_t least = least_transfer_bytes.load();
  if (known_types.epoch != epoch()) known_types = {epoch(), {}};
  KnownTypes::Known& known = known_types.at(type);
  if (known.type != type || known.least_count == 0) {
    int bytes = 0;
    // A size of MPI_UNDEFINED means that it does not fit into an int.
    if (type != handles.datatype_null) library_calls.Type_size(type, &bytes);
    const std::int64_t least_count = bytes > 0 ? (least - 1) / bytes + 1 : bytes < 0 ? 1 : kMost;
    known = {type, static_cast<int>(std::min(least_count, kMost))};
  }
  return least != kNoTransfers && count >= known.least_count;
}

// Returns the only object of this process. It is never destroyed, since threads may use it while
// the process exits.
Transfers& Transfers::own() {
  static auto* const all = new Transfers;
  return *all;
}

void Transfers::turn(Transfer& transfer, State state, std::uint32_t started) {
  const auto change = [&](State what) { return (state == what) - (transfer.state == what); };
  active_transfers.fetch_sub(change(State::idle));
  const int left = change(State::left);
  transfer.state = state;
  if (left != 0) Runtime::active()->progress.leave_transfers(left, started);
}

bool Transfers::knows(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  return transfers_.count(request) > 0;
}

void Transfers::started(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = transfers_.try_emplace(request);
  if (is_new) known_transfers.fetch_add(1);
  turn(at->second, State::left, 1);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void Transfers::initialised(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = transfers_.try_emplace(request);
  if (is_new) known_transfers.fetch_add(1);
  turn(at->second, State::idle);
  at->second.persistent = true;
}

void Transfers::started_again(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (knows(requests[i])) started(requests[i]);
}

// Records that the message of this request is complete, and removes the request from the table. A
// persistent request stays in the table for later starts, unless `for_good` is true.
void Transfers::end(MPI_Request request, bool for_good) {
  const auto found = transfers_.find(request);
  if (found == transfers_.end()) return;
  turn(found->second, State::idle);
  if (found->second.persistent && !for_good) return;
  transfers_.erase(found);
  known_transfers.fetch_sub(1);
}

void Transfers::cancelled(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  end(request, false);
}

void Transfers::freed(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  end(request, true);
}

bool Transfers::take(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto found = transfers_.find(request);
  if (found == transfers_.end() || found->second.state != State::left) return false;
  turn(found->second, State::taken);
  return true;
}

void Transfers::give_back(MPI_Request request, bool completed) {
  const std::lock_guard lock(mutex_);
  if (completed) return end(request, false);
  const auto found = transfers_.find(request);
  if (found != transfers_.end()) turn(found->second, State::left);
}

void transfer_started(MPI_Request request) {
  if (Runtime::active()) Transfers::own().started(request);
}

void transfer_initialised(MPI_Request request) {
  if (Runtime::active()) Transfers::own().initialised(request);
}

void TakenTransfers::take(int count, const MPI_Request* requests) {
  Runtime* runtime = Runtime::active();
  for (int i = 0; runtime && i < count; ++i) {
    if (!Transfers::own().take(requests[i])) continue;
    if (!taken_) taken_.begin();
    taken_->all.push_back({requests[i], i});
  }
}

void TakenTransfers::AllTaken::give_back(bool completed, int count, const int* indices) {
  Runtime* runtime = Runtime::active();
  const int n = std::max(count, 0);  // MPI_UNDEFINED means that no request was completed
  for (const auto& [request, index] : std::exchange(all, {}))
    if (runtime)
      Transfers::own().give_back(
          request, completed || std::find(indices, indices + n, index) != indices + n);
}

void TakenTransfers::give_back(bool all, int count, const int* indices) {
  taken_->give_back(all, count, indices);
  taken_.end();
}

}  // namespace weft
