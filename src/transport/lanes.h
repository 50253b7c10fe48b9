// Lanes: numbers by which communicators share one of Weft's own. The messages of each have tags
// of its own, and go by the ranks' numbers in MPI_COMM_WORLD. Why: an MPI library may have no more
// than about 2,000 communicators, and these are the application's.
// A number is free on a rank as long as the rank has nothing under way with it. Ranks agree on one
// that is free on all of them. So no rank ever gets a message of an earlier use: whoever sent one
// to it had it received before the number was free on both.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

// The tags of one communicator of Weft's, or of one lane: as many for single collectives as for
// persistent ones, which keep theirs. A power of two of each, and the first is a multiple of both.
struct Tags {
  std::uint32_t first = 0;
  std::uint32_t each = 1;

  int of_single(std::uint32_t number) const {
    return static_cast<int>(first | (number & (each - 1)));
  }
  int of_persistent(std::uint32_t number) const {
    return static_cast<int>(first | each | (number & (each - 1)));
  }
  // The other way round; those of persistent ones begin with `each`.
  int number_of(int tag) const {
    return static_cast<int>(static_cast<std::uint32_t>(tag) & (2 * each - 1));
  }
};

// How the tags up to the library's greatest are given away: the first half to whom the communicator
// belongs alone, the rest to lanes. The greatest tag is never among them.
struct TagsOfAll {
  explicit TagsOfAll(std::int64_t greatest)
      : half(static_cast<std::uint32_t>(std::bit_floor(static_cast<std::uint64_t>(greatest) + 1)) /
             2),
        of_lane(half / kLong >= kPlenty ? kLong : std::min(half / 2, kShort)),
        lanes(static_cast<int>(std::min(half / of_lane - 1, kMostLanes))) {}

  Tags alone() const { return {0, half / 2}; }
  Tags of(int lane) const {
    return {half + static_cast<std::uint32_t>(lane) * of_lane, of_lane / 2};
  }

  static constexpr std::uint32_t kLong = 1 << 16, kShort = 1 << 13, kPlenty = 1 << 10,
                                 kMostLanes = 1 << 14;
  std::uint32_t half, of_lane;
  int lanes;
};

// Which numbers are in use on this rank. Not thread-safe.
class Lanes {
 public:
  explicit Lanes(int count) : count_(count) {}

  // All from here on are free here; what is the greatest on all ranks is free on all of them.
  int first_of_free() const { return 64 * static_cast<int>(used_.size()) - unused_at_end(); }
  // A bit for each that is free; the bits that all ranks have are those free on all.
  std::vector<std::int64_t> free_bits() const {
    std::vector<std::int64_t> bits(static_cast<std::size_t>((count_ + 63) / 64), -1);
    for (std::size_t word = 0; word < used_.size(); ++word)
      bits[word] = static_cast<std::int64_t>(~used_[word]);
    if (count_ % 64 != 0)
      bits.back() &= static_cast<std::int64_t>((std::uint64_t{1} << (count_ % 64)) - 1);
    return bits;
  }
  // -1: none.
  static int lowest_of(const std::vector<std::int64_t>& bits) {
    for (std::size_t word = 0; word < bits.size(); ++word)
      if (bits[word] != 0)
        return static_cast<int>(word) * 64 +
               std::countr_zero(static_cast<std::uint64_t>(bits[word]));
    return -1;
  }

  void take(int lane) {
    const auto word = static_cast<std::size_t>(lane / 64);
    if (word >= used_.size()) used_.resize(word + 1);
    used_[word] |= std::uint64_t{1} << (lane % 64);
  }
  void give_back(int lane) {
    used_[static_cast<std::size_t>(lane / 64)] &= ~(std::uint64_t{1} << (lane % 64));
    while (!used_.empty() && used_.back() == 0) used_.pop_back();
  }
  int in_use() const {
    int all = 0;
    for (const std::uint64_t word : used_) all += std::popcount(word);
    return all;
  }

 private:
  int unused_at_end() const { return used_.empty() ? 0 : std::countl_zero(used_.back()); }

  int count_;
  std::vector<std::uint64_t> used_;  // the last word is never 0
};

}  // namespace weft
