// NodeChunks: the data that ranks exchange through the node's shared memory, chunk by chunk, for
// one or several blocks per rank. Short data travel in the ranks' slots, one cache line each.
// Longer data are double-buffered, so that the next chunk can be written while the previous one is
// still being read. A rank signals once per chunk (or `signals` times), when it has written its own
// data of this chunk and has read all it needs of the previous one. A rank that has waited for a
// reader's signal of chunk k - 1 may thus write chunk k over chunk k - 2. If two ranks exchange
// data, they swap their memory from one operation to the next: each rank writes where it read last
// (Halves in schedule.h). Otherwise a rank's data lie in memory of its own. Data longer than a page
// use the same memory in every schedule, on pages shared with no other rank: the first access
// places them in the rank's NUMA domain.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

class NodeChunks {
 public:
  // Reserves shared memory for `blocks` blocks per rank, each of `count` elements of `extent`
  // bytes; all ranks must give the same values. A chunk has at most `most` elements, even if
  // Tuning::chunk_bytes would allow more.
  NodeChunks(Builder& b, std::int64_t count, std::int64_t extent = 1, int signals = 1,
             std::int64_t most = INT64_MAX, int blocks = 1)
      : NodeChunks(b, count, extent, signals, most, blocks, b.tuning().chunk_bytes, false) {}

  // Returns the chunks for an exchange in which each rank reads the data of all others.
  static NodeChunks exchanged(Builder& b, std::int64_t count, std::int64_t extent) {
    return {b, count, extent, 1, INT64_MAX, 1, b.tuning().chunk_bytes, ranks_here(b.shape()) == 2};
  }

  // Returns the chunks for an algorithm in which all ranks work at the same time, so that smaller
  // chunks would let no rank begin earlier. Data that fit into the memory of two chunks form a
  // single chunk.
  static NodeChunks in_step(Builder& b, std::int64_t count, std::int64_t extent, int signals,
                            int blocks) {
    const std::int64_t both = kDepth * b.tuning().chunk_bytes;
    const bool fits = count <= fitting(block_bytes(both, blocks), extent);
    return {b, count, extent, signals, INT64_MAX, blocks, fits ? both : both / kDepth, false};
  }

  bool done() const { return begin() >= total_; }
  void next() { ++chunk_; }
  std::int64_t chunks() const { return (total_ + most_ - 1) / most_; }

  bool is_cut() const { return most_ < total_; }
  // Number of the first element in the current chunk.
  std::int64_t begin() const { return chunk_ * most_; }
  // Returns how many elements of a block of `total` elements are in the current chunk. All blocks
  // advance together.
  std::int64_t count(std::int64_t total) const {
    return std::clamp<std::int64_t>(total - begin(), 0, most_);
  }
  std::int64_t count() const { return count(total_); }

  // Returns how many elements lie between the current chunk and the one whose memory it reuses.
  std::int64_t distance_of_reuse() const { return kDepth * most_; }

  // Returns where `rank` puts the current chunk of one of its blocks.
  Location of(int rank, int block = 0) const {
    const int node_rank = node_rank_of(b_.shape(), rank);
    if (in_slots_) return b_.slot(node_rank);
    const std::int64_t in_own = (depth() * block + chunk_ % kDepth) * stride_;
    if (!change_hands_) return memory_ + (node_rank * own_bytes_ + in_own);
    const bool is_first = (node_rank + chunk_ / kDepth) % 2 == 0;
    return {is_first ? Buffer::half_a : Buffer::half_b, in_own};
  }

  void signal() {
    if (!is_alone()) b_.signal();
  }
  // Signals that this rank has read the current chunk, if its memory will be reused. It is for a
  // rank that reads only.
  void signal_if_reused() {
    if (total_ > kDepth * most_) b_.signal();
  }
  // Waits for the last signal that `rank` gives for the current chunk.
  void wait(int rank) const { wait(rank, signals_); }
  // Waits for the nth signal that `rank` gives for the current chunk.
  void wait(int rank, int nth) const { wait(rank, nth, signals_); }
  void wait(int rank, int nth, int signals) const {
    if (rank != b_.shape().rank) b_.wait(rank, static_cast<std::uint32_t>(chunk_ * signals + nth));
  }
  // Waits until `reader` has read the data that the current chunk will overwrite.
  void wait_until_read(int reader) const {
    if (chunk_ >= kDepth && reader != b_.shape().rank)
      b_.wait(reader, static_cast<std::uint32_t>((chunk_ - 1) * signals_ + 1));
  }
  // Waits until `reader` has read the data that the current chunk will overwrite. It is for readers
  // whose last signal of a chunk says that they have read that same chunk, so that they may still
  // read the one after it.
  void wait_until_passed_on(int reader) const {
    if (chunk_ >= kDepth)
      b_.wait(reader, static_cast<std::uint32_t>((chunk_ - kDepth + 1) * signals_));
  }

 private:
  // Number of chunks of a block in shared memory at a time.
  static constexpr std::int64_t kDepth = 2;
  std::int64_t depth() const { return is_cut() ? kDepth : 1; }

  NodeChunks(Builder& b, std::int64_t count, std::int64_t extent, int signals, std::int64_t most,
             int blocks, std::int64_t chunk_bytes, bool change_hands)
      : b_(b),
        signals_(signals),
        total_(count),
        most_(std::min({count, most, fitting(block_bytes(chunk_bytes, blocks), extent)})),
        stride_(to_lines(most_ * extent)),
        own_bytes_(depth() * blocks * stride_),
        in_slots_(!is_cut() && blocks == 1 && most_ * extent <= kSlotPayloadBytes),
        change_hands_(change_hands) {
    if (in_slots_ || is_alone()) return;
    const bool has_pages = own_bytes_ > kPageBytes;
    const std::int64_t last = own_bytes_;
    if (has_pages) own_bytes_ = kNodeBytesPerRank;
    const std::int64_t bytes = (ranks_here(b.shape()) - 1) * own_bytes_ + last;
    memory_ = b.node(bytes, has_pages ? kPageBytes : kLineBytes);
    const std::int64_t uses = (chunks() + kDepth - 1) / kDepth;
    if (change_hands_) b.halve(memory_, own_bytes_, uses % 2 != 0);
  }

  static std::int64_t to_lines(std::int64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  // Returns the bytes of a block in one chunk, in whole cache lines, so that all blocks fit into a
  // chunk.
  static std::int64_t block_bytes(std::int64_t chunk_bytes, int blocks) {
    return blocks == 1 ? chunk_bytes : chunk_bytes / blocks / kLineBytes * kLineBytes;
  }
  static std::int64_t fitting(std::int64_t bytes, std::int64_t extent) {
    return std::max<std::int64_t>(bytes / extent, 1);
  }

  bool is_alone() const { return ranks_here(b_.shape()) == 1; }

  Builder& b_;
  const int signals_;  // number of signals of each rank per chunk
  const std::int64_t total_;
  const std::int64_t most_;  // number of elements in each chunk except the last
  const std::int64_t stride_;
  std::int64_t own_bytes_;  // bytes of shared memory per rank
  const bool in_slots_;
  const bool change_hands_;
  Location memory_;
  std::int64_t chunk_ = 0;
};

}  // namespace weft
