// NodeSums: reduces the vectors of a node's ranks in its shared memory, chunk by chunk, and
// distributes the leaders' results to all. The vector has a block for each leader. Each block
// passes from rank to rank downwards and ends at its leader: each rank reads its vector once and
// adds it to the sum of the rank above. With the node's first rank as the only leader, the order is
// right for non-commutative operators. A short vector is instead copied in by all ranks and reduced
// by the leader. Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction,
// chunks)
#pragma once

#include <cstdint>

#include "patterns/blocks.h"
#include "schedule/builder.h"

namespace weft {

class NodeSums {
 public:
  // The bytes of a leader's block that are reduced at a time. They take 10 us at 100 Gbit/s, and
  // longer in slower networks, so that the start of a round between nodes is short in comparison.
  // Three chunks fit into a core's own cache. The next chunk is reduced while this one is in
  // transit between the nodes. Tuning tries smaller chunks.
  static constexpr std::int64_t kChunk_bytes = 128 * 1024;

  enum class Result : std::uint8_t {
    for_all,  // every rank gets the results: it calls publish() and copy_out()
    // Only the leader gets the result. Its publish() signals that it no longer uses the chunk, so
    // that the chunk's shared memory may be reused. On other ranks publish() does nothing.
    for_the_leader
  };

  // `leaders` is 1 or the number of ranks on this node. A single leader has node rank
  // `leader_node_rank`.
  NodeSums(Builder& b, int leaders, Result result, int leader_node_rank = 0);

  std::int64_t chunks() const { return chunks_; }
  bool leads() const { return is_leader(node_rank_); }

  // count() and offset() return how many elements of a chunk belong to this leader's block, and
  // where they begin in the vector, in bytes. shared() returns where their result must lie in
  // shared memory; if the rank is alone on its node, it returns their place in the vector itself.
  std::int64_t count(std::int64_t chunk) const { return count_of(block_, chunk); }
  std::int64_t offset(std::int64_t chunk) const { return offset_of(block_, chunk); }
  std::int64_t most() const { return most_; }  // number of elements of a block in the longest chunk
  Location shared(std::int64_t chunk) const;

  // Does this rank's share of reducing a chunk. A leader gets the node's sum of its own block at
  // `own`, which may be shared(chunk).
  void reduce(std::int64_t chunk, Location own);
  // Signals that the result of the next chunk is in shared memory. Must be called once for each
  // chunk. With for_all, it must come between the reduce() calls of the two chunks after that one.
  void publish();
  // Waits until each leader has published its part of the chunk, and copies all parts to the
  // receive buffer. Must precede the publish() of the next chunk.
  void copy_out(std::int64_t chunk);

 private:
  static constexpr std::int64_t kDepth = 3;  // number of chunks in shared memory at a time

  bool is_leader(int node_rank) const { return leaders_ > 1 || node_rank == leader_node_rank_; }
  // Returns the node rank of the leader that reduces block `block`.
  int leader_of(int block) const { return leaders_ > 1 ? block : leader_node_rank_; }
  int rank_at(int node_rank) const { return rank_here(b_.shape(), node_rank); }
  std::int64_t offset_of(int block, std::int64_t chunk) const;
  std::int64_t count_of(int block, std::int64_t chunk) const;
  // Returns where in shared memory the sum of block `index` lies. If the leader alone reduces, it
  // returns where the vector of node rank `index` lies.
  Location memory_of(int index, std::int64_t chunk) const;

  void reduce_all_at_the_leader(Location own);
  void add_to_block(int block, std::int64_t chunk, Location own);
  void wait_until_unused(std::int64_t chunk) const;

  bool publishes(int node_rank) const;
  int additions(int node_rank) const { return leaders_ - (is_leader(node_rank) ? 1 : 0); }
  // added() returns the value of a rank's counter once it has added its operand to its nth block of
  // a chunk. published() returns the value once it has published the chunk's result.
  std::uint32_t added(int node_rank, std::int64_t chunk, int nth) const;
  std::uint32_t published(int node_rank, std::int64_t chunk) const;

  Builder& b_;
  const int ranks_;  // number of ranks on this node
  const int node_rank_;
  const int leaders_;
  const int leader_node_rank_;
  const Result result_;
  const int block_;  // block of this rank if it is a leader
  const Blocks blocks_;
  const std::int64_t most_;
  const std::int64_t chunks_;
  const bool all_at_the_leader_;
  const bool in_slots_;
  std::int64_t stride_ = 0;
  Location memory_;
};

}  // namespace weft
