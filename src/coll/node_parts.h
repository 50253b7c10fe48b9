// NodeParts: the data that ranks show each other in the node's memory, part after part, in one or
// several slots per rank. Short data travel in the ranks' slots. Longer data use two places in
// turn, so that the next part can be written while the previous one is still being read.
// A rank signals once per part (or as often as told), when it has written its slot for this part
// and has read all it needs of the previous one. So a rank that has waited for a reader's signal of
// part k - 1 may write part k, into the place of part k - 2.
// If two ranks exchange data, their slots swap from one use to the next: each rank writes where it
// read last (schedule.h, Halves). Otherwise a rank's slots lie in memory of its own. If they are
// longer than a page, that is the same memory in every schedule, on pages that it shares with no
// other rank: the first access puts them into the rank's NUMA domain, and all operations find them
// there.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

class NodeParts {
 public:
  // Prepares slots of `count` elements of `extent` bytes; all ranks must give the same values. A
  // part has at most `most` elements, whatever the tuning.
  NodeParts(Builder& b, std::int64_t count, std::int64_t extent = 1, int signals = 1,
            std::int64_t most = INT64_MAX, int slots = 1)
      : NodeParts(b, count, extent, signals, most, slots, b.tuning().part_bytes, false) {}

  // For exchanges in which each rank reads the slots of all others.
  static NodeParts exchanged(Builder& b, std::int64_t count, std::int64_t extent) {
    return {b, count, extent, 1, INT64_MAX, 1, b.tuning().part_bytes, ranks_here(b.shape()) == 2};
  }

  // For algorithms in which all ranks have equal work at a time, so that smaller parts let nobody
  // begin earlier: data that fill both places form one part.
  static NodeParts in_step(Builder& b, std::int64_t count, std::int64_t extent, int signals,
                           int slots) {
    const std::int64_t both = kPlaces * b.tuning().part_bytes;
    const bool fits = count <= fitting(slot_bytes(both, slots), extent);
    return {b, count, extent, signals, INT64_MAX, slots, fits ? both : both / kPlaces, false};
  }

  bool done() const { return begin() >= total_; }
  void next() { ++part_; }
  std::int64_t parts() const { return (total_ + most_ - 1) / most_; }

  bool is_cut() const { return most_ < total_; }
  std::int64_t begin() const { return part_ * most_; }  // elements
  // Returns the elements of this part, out of `total` in one of several blocks that advance
  // together.
  std::int64_t count(std::int64_t total) const {
    return std::clamp<std::int64_t>(total - begin(), 0, most_);
  }
  std::int64_t count() const { return count(total_); }

  // Returns the distance in elements to the earlier data that this part overwrites.
  std::int64_t distance_of_reuse() const { return kPlaces * most_; }

  // Returns a rank's slot for this part.
  Location of(int rank, int slot = 0) const {
    const int node_rank = node_rank_of(b_.shape(), rank);
    if (in_slots_) return b_.slot(node_rank);
    const std::int64_t in_own = (places_of_slot() * slot + part_ % kPlaces) * stride_;
    if (!change_hands_) return places_ + (node_rank * own_bytes_ + in_own);
    const bool is_first = (node_rank + part_ / kPlaces) % 2 == 0;
    return {is_first ? Buffer::half_a : Buffer::half_b, in_own};
  }

  void signal() {
    if (!is_alone()) b_.signal();
  }
  // For a rank that shows nothing: others may have to know how far it has read.
  void signal_if_reused() {
    if (total_ > kPlaces * most_) b_.signal();
  }
  // Waits until `rank` has signalled this part.
  void wait(int rank) const { wait(rank, signals_); }
  // Waits for the nth signal of this part, of `signals` that the rank gives.
  void wait(int rank, int nth) const { wait(rank, nth, signals_); }
  void wait(int rank, int nth, int signals) const {
    if (rank != b_.shape().rank) b_.wait(rank, static_cast<std::uint32_t>(part_ * signals + nth));
  }
  // Waits until `reader` has read the data that this part overwrites.
  void wait_until_read(int reader) const {
    if (part_ >= kPlaces && reader != b_.shape().rank)
      b_.wait(reader, static_cast<std::uint32_t>((part_ - 1) * signals_ + 1));
  }
  // Does likewise if the reader's last signal of a part means that it has read that part: it may
  // still be reading the previous one.
  void wait_until_passed_on(int reader) const {
    if (part_ >= kPlaces)
      b_.wait(reader, static_cast<std::uint32_t>((part_ - kPlaces + 1) * signals_));
  }

 private:
  static constexpr std::int64_t kPlaces = 2;
  std::int64_t places_of_slot() const { return is_cut() ? kPlaces : 1; }

  NodeParts(Builder& b, std::int64_t count, std::int64_t extent, int signals, std::int64_t most,
            int slots, std::int64_t part_bytes, bool change_hands)
      : b_(b),
        signals_(signals),
        total_(count),
        most_(std::min({count, most, fitting(slot_bytes(part_bytes, slots), extent)})),
        stride_(to_lines(most_ * extent)),
        own_bytes_(places_of_slot() * slots * stride_),
        in_slots_(!is_cut() && slots == 1 && most_ * extent <= kSlotPayloadBytes),
        change_hands_(change_hands) {
    if (in_slots_ || is_alone()) return;
    const bool has_pages = own_bytes_ > kPageBytes;
    const std::int64_t last = own_bytes_;
    if (has_pages) own_bytes_ = kNodeBytesPerRank;
    const std::int64_t bytes = (ranks_here(b.shape()) - 1) * own_bytes_ + last;
    places_ = b.node(bytes, has_pages ? kPageBytes : kLineBytes);
    const std::int64_t uses = (parts() + kPlaces - 1) / kPlaces;
    if (change_hands_) b.halve(places_, own_bytes_, uses % 2 != 0);
  }

  static std::int64_t to_lines(std::int64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  // Returns whole cache lines, such that all slots fit.
  static std::int64_t slot_bytes(std::int64_t part_bytes, int slots) {
    return slots == 1 ? part_bytes : part_bytes / slots / kLineBytes * kLineBytes;
  }
  static std::int64_t fitting(std::int64_t bytes, std::int64_t extent) {
    return std::max<std::int64_t>(bytes / extent, 1);
  }

  bool is_alone() const { return ranks_here(b_.shape()) == 1; }

  Builder& b_;
  const int signals_;  // of each rank per part
  const std::int64_t total_;
  const std::int64_t most_;  // elements of one part
  const std::int64_t stride_;
  std::int64_t own_bytes_;  // of a rank's memory
  const bool in_slots_;
  const bool change_hands_;
  Location places_;
  std::int64_t part_ = 0;
};

}  // namespace weft
