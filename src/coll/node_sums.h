// NodeSums: reduces the vectors of a node's ranks in its memory for its leaders, chunk after chunk,
// and passes the leaders' results back to all. The vector has a block for each leader. Each block
// is passed down from rank to rank and ends at its leader: each rank reads its vector once and adds
// to the sum of the rank above. With one leader, the node's first rank, the order is thus right for
// operators that do not commute. A short vector is copied in by all ranks and reduced by the
// leader.
// Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks)
#pragma once

#include <cstdint>

#include "patterns/blocks.h"
#include "schedule/builder.h"

namespace weft {

class NodeSums {
 public:
  // The bytes of a leader's block that are processed at a time. At 100 Gbit/s they take 10 us,
  // compared with which the start of a round between nodes is short, the more so in slower
  // networks; and three chunks fit into a core's own cache. The next chunk is reduced while this
  // one is in transit between the nodes. Tuning tries smaller chunks.
  static constexpr std::int64_t kChunk_bytes = 128 * 1024;

  enum class Result : std::uint8_t {
    for_all,        // every rank calls publish() and copy_out()
    for_the_leader  // only the leader calls publish(): it uses the chunk no more
  };

  // `leaders` must be 1 or the number of ranks here; a single leader is the rank of
  // `leader_node_rank`.
  NodeSums(Builder& b, int leaders, Result result, int leader_node_rank = 0);

  std::int64_t chunks() const { return chunks_; }
  bool leads() const { return is_leader(node_rank_); }

  // Return this leader's share of a chunk: its elements, their offset in the vector, and where the
  // result is shared (in the vector itself if this rank is alone on its node).
  std::int64_t count(std::int64_t chunk) const { return count_of(block_, chunk); }
  std::int64_t offset(std::int64_t chunk) const { return offset_of(block_, chunk); }
  std::int64_t most() const { return most_; }  // elements of any chunk
  Location shared(std::int64_t chunk) const;

  // Does this rank's share of a chunk's reduction. The sum of the leader's own block goes to `own`,
  // which may be shared(chunk).
  void reduce(std::int64_t chunk, Location own);
  // Must be called once for each chunk; with for_all between the reduce() calls of the next two
  // chunks.
  void publish();
  // Waits for each leader's publish() of the chunk and copies its result out. Must precede the
  // publish() of the next chunk.
  void copy_out(std::int64_t chunk);

 private:
  static constexpr std::int64_t kDepth = 3;  // chunks that are in memory at a time

  bool is_leader(int node_rank) const { return leaders_ > 1 || node_rank == leader_node_rank_; }
  // Returns the node rank of the leader that owns block `block`.
  int leader_of(int block) const { return leaders_ > 1 ? block : leader_node_rank_; }
  int rank_at(int node_rank) const { return rank_here(b_.shape(), node_rank); }
  std::int64_t offset_of(int block, std::int64_t chunk) const;
  std::int64_t count_of(int block, std::int64_t chunk) const;
  // Returns where the sum of a block lies or, if all are added at the leader, the vector of a rank.
  Location memory_of(int index, std::int64_t chunk) const;

  void reduce_all_at_the_leader(Location own);
  void add_to_block(int block, std::int64_t chunk, Location own);
  void wait_until_unused(std::int64_t chunk) const;

  bool publishes(int node_rank) const;
  int additions(int node_rank) const { return leaders_ - (is_leader(node_rank) ? 1 : 0); }
  // Return a rank's counter after it has added to its n-th block of a chunk, or published one.
  std::uint32_t added(int node_rank, std::int64_t chunk, int nth) const;
  std::uint32_t published(int node_rank, std::int64_t chunk) const;

  Builder& b_;
  const int ranks_;      // here
  const int node_rank_;  // of this rank
  const int leaders_;
  const int leader_node_rank_;
  const Result result_;
  const int block_;  // of this rank, if it leads
  const Blocks blocks_;
  const std::int64_t most_;
  const std::int64_t chunks_;
  const bool all_at_the_leader_;
  const bool in_slots_;
  std::int64_t stride_ = 0;
  Location memory_;
};

}  // namespace weft
