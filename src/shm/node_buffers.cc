// Implements NodeBuffers: assigns parts of a node's shared memory to operations. The memory begins
// with the numbers of the operations that each rank has completed; the node buffers follow.
#include "shm/node_buffers.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

std::int64_t front_bytes(int ranks, int buffers) {
  return to_pages((buffers + 1) * ranks * kSlotBytes);
}

// Pauses between two reads of a counter in shared memory. Without a pause the waiting core keeps
// moving the cache line, and sees the awaited value five times as late.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::int64_t NodeBuffers::bytes(int ranks, std::int64_t buffer_bytes) {
  return front_bytes(ranks, kCount) + kCount * to_pages(buffer_bytes + ranks * kSlotBytes);
}

NodeBuffers::NodeBuffers(std::byte* memory, int rank, int ranks, std::int64_t buffer_bytes)
    : memory_(memory),
      rank_(rank),
      ranks_(ranks),
      buffer_bytes_(to_pages(buffer_bytes + ranks * kSlotBytes)) {
  std::byte* next = memory + front_bytes(ranks, kCount);
  for (View& buffer : views_) buffer.memory = std::exchange(next, next + buffer_bytes_);
}

NodeBufferUse::Seen NodeBufferUse::look_again(int rank, std::uint32_t value, int polls) const {
  constexpr int kUse = kSignalBits + kFingerprintBits;
  for (;;) {
    const std::uint64_t counter = counter_of(rank);
    if (is_seen(counter, value)) return Seen::yes;
    if (counter >> kUse != base_ >> kUse) {
      // The rank already uses the buffer for a later operation, so in this operation it had reached
      // any value.
      if (is_reached(base_, counter)) return Seen::yes;
    } else if (counter >> kSignalBits != base_ >> kSignalBits) {
      return Seen::other_call;
    }
    if (--polls <= 0) return Seen::no;
    pause();
  }
}

bool NodeBuffers::look_who_passed(std::uint64_t number) {
  std::uint64_t least = passed(0).load(std::memory_order_acquire);
  for (int rank = 1; rank < ranks_; ++rank)
    least = std::min(least, passed(rank).load(std::memory_order_acquire));
  all_passed_.store(least, std::memory_order_release);
  return least >= number;
}

bool NodeBuffers::look_who_ended(std::uint32_t buffer, std::uint64_t number) {
  std::uint64_t least = UINT64_MAX;
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::uint64_t over_up_to = over(rank).load(std::memory_order_acquire);
    least = std::min(least, over_up_to);
    if (over_up_to < number && released(buffer, rank).load(std::memory_order_acquire) < number)
      return false;
  }
  all_over_.store(least, std::memory_order_release);
  return true;
}

bool NodeBuffers::are_at_rest() {
  for (std::uint32_t buffer = 0; buffer < kCount; ++buffer) {
    const auto& [memory, uses, last, last_in_order] = views_[buffer];
    if (last != 0 && !(last_in_order ? all_have_passed(last) : all_have_ended(buffer, last)))
      return false;
  }
  return true;
}

void NodeBuffers::begin_again(bool anew) {
  for (auto& backoff : backoffs_) backoff.reset();
  if (!anew) return;
  taken_ = 0;
  for (auto* count : {&taken_at_any_time_, &ended_at_any_time_})
    count->store(0, std::memory_order_relaxed);
  for (auto* number : {&all_passed_, &all_over_}) number->store(0, std::memory_order_relaxed);
  for (View& buffer : views_) buffer = View{.memory = buffer.memory};
}

}  // namespace weft
