// Mailboxes: shared memory through which each pair of ranks of a node exchanges a block, for
// collectives such as alltoallv, in which only the sender and the receiver know a block's length. A
// block travels in pieces of a fixed size, so that both know how many there are.
// A rank runs as many rounds as its longest block has pieces. In each round it writes a piece for
// every rank to which it still has something to send, signals, and reads a piece from every rank
// from which it still receives. So its signal of round r (counted from 0) says that it has written
// the pieces of round r and has read those of round r - 1.
// If both ranks of a pair may send, they swap their memory after every second piece and for the
// next operation: each then writes where it has read before (Halves in schedule.h).
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

class Mailboxes {
 public:
  // Number of pieces of a block that are in memory at a time.
  static constexpr std::int64_t kDepth = 2;

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

  // Returns where piece number `piece` of the block from one rank to another lies.
  Location of(int from, int to, std::int64_t piece) const {
    const std::int64_t at = (pair(from, to) * kDepth + piece % kDepth) * piece_bytes_;
    if (!swaps()) return boxes_ + at;
    const bool is_first = (from < to) == (piece / kDepth % 2 == 0);
    return {is_first ? Buffer::half_a : Buffer::half_b, at};
  }

  // Waits until `reader` has read the data that piece number `piece` for it will overwrite. If the
  // pair swaps its memory, these are the data of four pieces before, otherwise of two pieces
  // before.
  void wait_until_read(int reader, std::int64_t piece) const {
    const std::int64_t distance = swaps() ? 2 * kDepth : kDepth;
    if (piece >= distance) b_.wait(reader, static_cast<std::uint32_t>(piece - distance + 2));
  }
  void wait(int writer, std::int64_t piece) const {
    b_.wait(writer, static_cast<std::uint32_t>(piece + 1));
  }

  // Tells the length of this rank's block for `to`. The receiver compares it with its own by
  // check().
  void tell(int to, std::int64_t bytes) { b_.tell(word(b_.shape().rank, to), short_form(bytes)); }
  void check(int from, std::int64_t bytes) {
    b_.check(from, word(from, b_.shape().rank), short_form(bytes));
  }

 private:
  // Most lengths that fit into the payload of a rank's slot.
  static constexpr int kMostInSlots = kSlotPayloadBytes / kWordBytes;

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

  // Returns the bytes of one piece, in whole cache lines, so that the pieces of all pairs fit into
  // the node's shared memory.
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
  // Bytes of a rank's lengths in memory behind the slots; 0 if they fit into its slot.
  const std::int64_t words_bytes_;
  const std::int64_t piece_bytes_;
  Location words_, boxes_;
};

}  // namespace weft
