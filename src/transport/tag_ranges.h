// Tag ranges: parts of the tags of an internal communicator, so that several communicators can
// share it. They must share, because an MPI library may have only about 2,000 communicators, which
// belong to the application. The messages of each communicator use its own tag range, and the ranks
// of MPI_COMM_WORLD. A tag range is free on a rank while the rank has no operation in progress with
// it. Ranks agree on a range that is free on all of them. Therefore no rank receives a message of
// an earlier use: that message was received before the range became free on both sides.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

// Tags: the tags of an internal communicator or of a tag range. One half is for single collectives;
// the other half is for persistent ones, which keep their tags. `each` is the size of a half, a
// power of two; `first` is a multiple of twice that size.
struct Tags {
  std::uint32_t first = 0;
  std::uint32_t each = 1;

  int of_single(std::uint32_t number) const {
    return static_cast<int>(first | (number & (each - 1)));
  }
  int of_persistent(std::uint32_t number) const {
    return static_cast<int>(first | each | (number & (each - 1)));
  }
  // Returns the position of a tag among these tags. Persistent operations have positions from
  // `each` on.
  int number_of(int tag) const {
    return static_cast<int>(static_cast<std::uint32_t>(tag) & (2 * each - 1));
  }
};

// Divides the tags up to the MPI library's MPI_TAG_UB: the first half is for a communicator that
// shares its internal communicator with none, the rest for tag ranges. The greatest tag is never
// used.
struct TagsOfAll {
  explicit TagsOfAll(std::int64_t greatest)
      : half(static_cast<std::uint32_t>(std::bit_floor(static_cast<std::uint64_t>(greatest) + 1)) /
             2),
        of_tag_range(half / kLong >= kPlenty ? kLong : std::min(half / 2, kShort)),
        tag_ranges(static_cast<int>(std::min(half / of_tag_range - 1, kMostTagRanges))) {}

  Tags alone() const { return {0, half / 2}; }
  Tags of(int tag_range) const {
    return {half + static_cast<std::uint32_t>(tag_range) * of_tag_range, of_tag_range / 2};
  }

  static constexpr std::uint32_t kLong = 1 << 16, kShort = 1 << 13, kPlenty = 1 << 10,
                                 kMostTagRanges = 1 << 14;
  std::uint32_t half, of_tag_range;
  int tag_ranges;
};

// TagRanges: the tag ranges in use on this rank. Not thread-safe.
class TagRanges {
 public:
  explicit TagRanges(int count) : count_(count) {}

  // Returns a number such that this tag range and all higher ones are free on this rank. The
  // maximum over all ranks is free on all of them.
  int first_of_free() const { return 64 * static_cast<int>(used_.size()) - unused_at_end(); }
  // Returns a bit mask of the tag ranges that are free on this rank. The bitwise AND over all ranks
  // gives those that are free on all of them.
  std::vector<std::int64_t> free_bits() const {
    std::vector<std::int64_t> bits(static_cast<std::size_t>((count_ + 63) / 64), -1);
    for (std::size_t word = 0; word < used_.size(); ++word)
      bits[word] = static_cast<std::int64_t>(~used_[word]);
    if (count_ % 64 != 0)
      bits.back() &= static_cast<std::int64_t>((std::uint64_t{1} << (count_ % 64)) - 1);
    return bits;
  }
  // Returns the number of the lowest set bit; -1 if no bit is set.
  static int lowest_of(const std::vector<std::int64_t>& bits) {
    for (std::size_t word = 0; word < bits.size(); ++word)
      if (bits[word] != 0)
        return static_cast<int>(word) * 64 +
               std::countr_zero(static_cast<std::uint64_t>(bits[word]));
    return -1;
  }

  void take(int tag_range) {
    const auto word = static_cast<std::size_t>(tag_range / 64);
    if (word >= used_.size()) used_.resize(word + 1);
    used_[word] |= std::uint64_t{1} << (tag_range % 64);
  }
  void give_back(int tag_range) {
    used_[static_cast<std::size_t>(tag_range / 64)] &= ~(std::uint64_t{1} << (tag_range % 64));
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
  std::vector<std::uint64_t> used_;  // bit mask of used tag ranges; the last word is never 0
};

}  // namespace weft
