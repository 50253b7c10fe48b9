// Whose turn it is. The memory begins with what each rank has ended; the windows follow.
#include "shm/node_windows.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t to_pages(std::int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

std::int64_t NodeWindows::bytes(int ranks, std::int64_t window_bytes) {
  return to_pages((kWindows + 1) * ranks * kLineBytes) + kWindows * to_pages(window_bytes);
}

NodeWindows::NodeWindows(std::byte* memory, int rank, int ranks, std::int64_t window_bytes)
    : memory_(memory), rank_(rank), ranks_(ranks), window_bytes_(to_pages(window_bytes)) {
  last_in_order_.fill(true);
}

NodeTurn NodeWindows::next(Ends ends) {
  const std::uint64_t number = taken_++;
  const auto window = static_cast<std::int64_t>(number % kWindows);
  NodeTurn turn;
  turn.windows_ = this;
  turn.memory_ = memory_ + to_pages((kWindows + 1) * ranks_ * kLineBytes) + window * window_bytes_;
  turn.own_line_ = turn.memory_ + rank_ * kLineBytes;
  turn.base_ = number / kWindows << 32;
  turn.number_ = number;
  turn.in_order_ = ends == Ends::in_order;
  turn.after_in_order_ = last_in_order_[static_cast<std::size_t>(window)];
  last_in_order_[static_cast<std::size_t>(window)] = turn.in_order_;
  return turn;
}

NodeWindows::Counter NodeWindows::passed(int rank) const {
  return NodeTurn::counter_at(memory_ + rank * kLineBytes);
}

NodeWindows::Counter NodeWindows::released(std::uint64_t number, int rank) const {
  const auto line = static_cast<std::int64_t>(number % kWindows + 1) * ranks_ + rank;
  return NodeTurn::counter_at(memory_ + line * kLineBytes);
}

bool NodeWindows::all_have_passed(std::uint64_t number) {
  if (all_passed_.load(std::memory_order_acquire) > number) return true;
  std::uint64_t least = passed(0).load(std::memory_order_acquire);
  for (int rank = 1; rank < ranks_; ++rank)
    least = std::min(least, passed(rank).load(std::memory_order_acquire));
  all_passed_.store(least, std::memory_order_release);
  return least > number;
}

bool NodeWindows::all_have_released(std::uint64_t number) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (released(number, rank).load(std::memory_order_acquire) <= number / kWindows) return false;
  return true;
}

bool NodeTurn::may_begin() const {
  constexpr unsigned kWindows = NodeWindows::kWindows;
  if (number_ < kWindows) return true;
  const std::uint64_t before = number_ - kWindows;
  return after_in_order_ ? windows_->all_have_passed(before) : windows_->all_have_released(before);
}

void NodeTurn::end(bool synchronizing) const {
  NodeWindows& all = *windows_;
  if (!in_order_) {
    all.released(number_, all.rank_)
        .store(number_ / NodeWindows::kWindows + 1, std::memory_order_release);
    return;
  }
  all.passed(all.rank_).store(number_ + 1, std::memory_order_release);
  // All have begun this one, so all have ended those before it.
  if (synchronizing) all.all_passed_.store(number_, std::memory_order_release);
}

}  // namespace weft
