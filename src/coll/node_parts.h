// What the ranks show each other in the node's memory, part after part: a slot for each rank (or
// several), where what fits travels in the ranks' lines, and longer data in two places that take
// turns, so that the next part may be written while this one is still being read.
// The protocol: a rank signals once per part (or as often as told), when it has written its slot
// for this part and read all it wants of the part before. So who has waited for a reader's signal
// of part k - 1 may write part k, into the place of part k - 2.
// Where two ranks exchange what they have, their slots change hands from one use to the next: each
// rank writes where it has read last (schedule.h, Halves). Else a rank's slots lie in memory of its
// own. If they are longer than a page, that is the same memory in every schedule, on pages that no
// other rank has a part of: the first touch puts them into the rank's NUMA domain, and no later
// operation finds them in another.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

class NodeParts {
 public:
  // For `count` elements of `extent` bytes in each slot, the same on all ranks; no more than `most`
  // in a part, whatever the tuning.
  NodeParts(Builder& b, std::int64_t count, std::int64_t extent = 1, int signals = 1,
            std::int64_t most = INT64_MAX, int slots = 1)
      : NodeParts(b, count, extent, signals, most, slots, b.tuning().part_bytes, false) {}

  // Where each rank reads what all others show.
  static NodeParts exchanged(Builder& b, std::int64_t count, std::int64_t extent) {
    return {b, count, extent, 1, INT64_MAX, 1, b.tuning().part_bytes, ranks_here(b.shape()) == 2};
  }

  // Where all have as much to do at a time, so that cutting lets nobody begin earlier: what takes
  // up both places is one part.
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
  // Those of this part, of `total` in one of several blocks that go side by side.
  std::int64_t count(std::int64_t total) const {
    return std::clamp<std::int64_t>(total - begin(), 0, most_);
  }
  std::int64_t count() const { return count(total_); }

  // How many elements before one of this part lay where it goes now.
  std::int64_t distance_of_reuse() const { return kPlaces * most_; }

  // A slot of a rank for this part.
  Location of(int rank, int slot = 0) const {
    const int place = place_of(b_.shape(), rank);
    if (in_lines_) return b_.line(place);
    const std::int64_t in_own = (places_of_slot() * slot + part_ % kPlaces) * stride_;
    if (!change_hands_) return places_ + (place * own_bytes_ + in_own);
    const bool is_first = (place + part_ / kPlaces) % 2 == 0;
    return {is_first ? Buffer::half_a : Buffer::half_b, in_own};
  }

  void signal() {
    if (!is_alone()) b_.signal();
  }
  // For a rank that shows nothing itself: others may have to know how far it has read.
  void signal_if_reused() {
    if (total_ > kPlaces * most_) b_.signal();
  }
  // Until `rank` has signalled this part.
  void wait(int rank) const { wait(rank, signals_); }
  // Until it has given the first, second, … signal of this part, of which it gives `signals`.
  void wait(int rank, int nth) const { wait(rank, nth, signals_); }
  void wait(int rank, int nth, int signals) const {
    if (rank != b_.shape().rank) b_.wait(rank, static_cast<std::uint32_t>(part_ * signals + nth));
  }
  // Until `reader` has read what lies in the place of this part.
  void wait_until_read(int reader) const {
    if (part_ >= kPlaces && reader != b_.shape().rank)
      b_.wait(reader, static_cast<std::uint32_t>((part_ - 1) * signals_ + 1));
  }
  // The same where it gives the last signal of a part only when it has read that part: it may still
  // be busy with the one before.
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
        in_lines_(!is_cut() && slots == 1 && most_ * extent <= kLinePayloadBytes),
        change_hands_(change_hands) {
    if (in_lines_ || is_alone()) return;
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
  // Whole lines, so that all slots fit.
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
  const bool in_lines_;
  const bool change_hands_;
  Location places_;
  std::int64_t part_ = 0;
};

}  // namespace weft
