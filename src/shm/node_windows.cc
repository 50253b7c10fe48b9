// Whose turn it is. The memory begins with what each rank has ended; the windows follow.
#include "shm/node_windows.h"

#include <algorithm>

namespace weft {
namespace {

std::int64_t to_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::int64_t front_bytes(int ranks, int windows) {
  return to_pages((windows + 1) * ranks * kLineBytes);
}

}  // namespace

std::int64_t NodeWindows::bytes(int ranks, std::int64_t window_bytes) {
  return front_bytes(ranks, kWindows) + kWindows * to_pages(window_bytes + ranks * kLineBytes);
}

NodeWindows::NodeWindows(std::byte* memory, int rank, int ranks, std::int64_t window_bytes)
    : memory_(memory),
      windows_(memory + front_bytes(ranks, kWindows)),
      rank_(rank),
      ranks_(ranks),
      window_bytes_(to_pages(window_bytes + ranks * kLineBytes)) {}

NodeTurn::Seen NodeTurn::look_closer(std::uint64_t counter) const {
  constexpr int kUse = kSignalBits + kFingerprintBits;
  if (counter >> kUse != base_ >> kUse) return is_reached(base_, counter) ? Seen::yes : Seen::no;
  return Seen::other_call;
}

bool NodeWindows::all_have_passed(std::uint64_t number) {
  if (all_passed_.load(std::memory_order_acquire) >= number) return true;
  std::uint64_t least = passed(0).load(std::memory_order_acquire);
  for (int rank = 1; rank < ranks_; ++rank)
    least = std::min(least, passed(rank).load(std::memory_order_acquire));
  all_passed_.store(least, std::memory_order_release);
  return least >= number;
}

bool NodeWindows::all_have_released(std::uint32_t window, std::uint64_t number) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (released(window, rank).load(std::memory_order_acquire) < number) return false;
  return true;
}

}  // namespace weft
