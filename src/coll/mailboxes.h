// Mailboxes: the memory through which pairs of ranks of a node exchange blocks whose lengths only
// they know, for collectives in which no rank knows all lengths. A block travels in pieces of one
// size, so that both ranks know how many there are. All ranks reserve the same memory.
// A rank's rounds are those of its longest block, given or taken. In each round it writes a piece
// for every rank to which it still gives, signals, and reads the pieces of those from which it
// still takes. So its signal of round r (counted from 0) says to all that it has written the pieces
// of round r and has read those of round r - 1, and it gives that signal wherever one of its pairs
// has so many pieces.
// If each of two ranks may give to the other, their memory swaps: each writes where it has read
// (schedule.h, Halves), after every second piece and in the next use.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

class Mailboxes {
 public:
  static constexpr std::int64_t kDepth = 2;  // pieces of a block that are in memory at a time

  explicit Mailboxes(Builder& b)
      : b_(b),
        size_(b.shape().size),
        has_root_(b.shape().kind == Kind::gatherv || b.shape().kind == Kind::scatterv),
        words_bytes_(size_ <= kMostInSlots ? 0 : to_lines(size_ * kWordBytes)),
        piece_bytes_(piece_bytes(b)) {
    if (words_bytes_ > 0) words_ = b.node(size_ * words_bytes_);
    const std::int64_t boxes_bytes = pairs() * kDepth * piece_bytes_;
    boxes_ = b.node(swaps() ? 2 * boxes_bytes : boxes_bytes, kPageBytes);
    if (swaps()) b.halve(boxes_, boxes_bytes, true);
  }

  std::int64_t pieces(std::int64_t bytes) const {
    return (bytes + piece_bytes_ - 1) / piece_bytes_;
  }
  bool is_cut(std::int64_t bytes) const { return bytes > piece_bytes_; }
  std::int64_t begin(std::int64_t piece) const { return piece * piece_bytes_; }
  std::int64_t length(std::int64_t bytes, std::int64_t piece) const {
    return std::min(piece_bytes_, bytes - begin(piece));
  }

  // Returns where a piece of the block from one rank to another lies.
  Location of(int from, int to, std::int64_t piece) const {
    const std::int64_t at = (pair(from, to) * kDepth + piece % kDepth) * piece_bytes_;
    if (!swaps()) return boxes_ + at;
    const bool is_first = (from < to) == (piece / kDepth % 2 == 0);
    return {is_first ? Buffer::half_a : Buffer::half_b, at};
  }

  // Waits until `reader` has read what lies where this piece for it will be written. Where the
  // memory swaps, that is an earlier piece, since this rank itself has read the one after it.
  void wait_until_read(int reader, std::int64_t piece) const {
    const std::int64_t distance = swaps() ? 2 * kDepth : kDepth;
    if (piece >= distance) b_.wait(reader, static_cast<std::uint32_t>(piece - distance + 2));
  }
  void wait(int writer, std::int64_t piece) const {
    b_.wait(writer, static_cast<std::uint32_t>(piece + 1));
  }

  // The sender of a block tells its length, and the receiver checks it.
  void tell(int to, std::int64_t bytes) { b_.tell(word(b_.shape().rank, to), short_form(bytes)); }
  void check(int from, std::int64_t bytes) {
    b_.check(from, word(from, b_.shape().rank), short_form(bytes));
  }

 private:
  static constexpr int kMostInSlots = kSlotPayloadBytes / kWordBytes;  // words

  static std::int64_t to_lines(std::int64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  static std::uint32_t short_form(std::int64_t bytes) {
    return static_cast<std::uint32_t>(bytes ^ (bytes >> 32));
  }

  bool swaps() const { return !has_root_; }
  std::int64_t pairs() const { return has_root_ ? size_ - 1 : size_ * (size_ - 1) / 2; }
  std::int64_t pair(int one, int other) const {
    const int low = std::min(one, other), high = std::max(one, other);
    if (!has_root_) return std::int64_t{high} * (high - 1) / 2 + low;
    const int root = b_.shape().root, other_than_root = low == root ? high : low;
    return other_than_root - (other_than_root > root);
  }

  // Returns whole cache lines, such that all mailboxes have room besides the words.
  std::int64_t piece_bytes(const Builder& b) const {
    const std::int64_t room = kNodeBytesPerRank - (words_bytes_ > 0 ? kPageBytes : 0);
    const std::int64_t of_pair = has_root_ ? room : room / (size_ - 1);
    return std::min(b.tuning().chunk_bytes, of_pair / kDepth) / kLineBytes * kLineBytes;
  }

  Location word(int from, int to) const {
    const Location first = words_bytes_ > 0 ? words_ + from * words_bytes_ : b_.slot(from);
    return first + to * kWordBytes;
  }

  Builder& b_;
  const int size_;
  const bool has_root_;
  const std::int64_t words_bytes_;  // of a rank, behind the slots; 0: in its slot
  const std::int64_t piece_bytes_;
  Location words_, boxes_;
};

}  // namespace weft
