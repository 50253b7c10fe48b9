// NodesInOrder: computes x0 op (x1 op (… op xp-1)) over nodes on which ranks are consecutive, chunk
// by chunk along a chain. From the last node to the first, a chunk passes through the ranks of each
// node in its shared memory, from the highest to the lowest; each adds its operand to the sum of
// the ranks above. The sum returns the same way, or goes to the root alone.
// Steps are grouped into ticks: in one tick, the lowest rank of a node sends a chunk to the
// previous node, the next chunk passes through the ranks of its node, and the one after that
// arrives from the next node. Results travel the other way in the same ticks, so both directions of
// a link are in use. Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007 (pipelined chain);
// Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks)
#pragma once

#include <cstdint>

#include "schedule/builder.h"

namespace weft {

class NodesInOrder {
 public:
  // Says which ranks get the sum: all, or only the root of the reduce.
  enum class Result : std::uint8_t { for_all, for_the_root };

  NodesInOrder(Builder& b, Result result);

  void run();

 private:
  // Bytes of a chunk, as in NodeSums. A chunk must take long compared with the start of a tick,
  // since messages between nodes start only when a rank reaches the next tick.
  static constexpr std::int64_t kChunk_bytes = 128 * 1024;
  // Number of chunks in shared memory at a time: one to which operands are added, or which the
  // slowest rank still copies out, one that arrives and one that leaves.
  static constexpr std::int64_t kDepth = 3;
  // Number of ticks from the message that carries a chunk between two nodes to the message that
  // brings back its result, for each node in between. Two ticks are for the messages; the third one
  // lets a late rank delay no other.
  static constexpr std::int64_t kTicksPerNode = 3;

  bool exists(std::int64_t chunk) const { return chunk >= 0 && chunk < chunks_; }
  std::int64_t count(std::int64_t chunk) const;
  std::int64_t offset(std::int64_t chunk) const { return chunk * most_ * b_.extent(Unit::recv); }

  int rank_at(int node_rank) const { return rank_here(s_, node_rank); }
  bool is_lowest() const { return node_rank_ == 0; }
  bool is_highest() const { return node_rank_ == ranks_ - 1; }
  bool has_node_before() const { return node_ > 0; }
  bool has_node_behind() const { return node_ + 1 < s_.nodes->count(); }
  int lowest_on(int node) const { return s_.nodes->ranks(node).front(); }
  int highest_on(int node) const { return s_.nodes->ranks(node).back(); }

  bool is_for_all() const { return result_ == Result::for_all; }
  bool results_come_here() const { return is_for_all() || !has_node_before(); }
  bool root_is_elsewhere() const { return !is_for_all() && s_.nodes->of(s_.root) > 0; }
  bool takes_result() const { return is_for_all() || s_.rank == s_.root; }

  // Returns where a chunk lies in `memory`, which has room for kDepth chunks. Chunk number kDepth
  // uses the place of chunk 0 again, and so on.
  Location in_turn(Location memory, std::int64_t chunk) const;
  Location sum(std::int64_t chunk) const { return in_turn(sums_, chunk); }
  Location result(std::int64_t chunk) const { return in_turn(results_, chunk); }

  void tick(std::int64_t now);
  void receive_sum(std::int64_t now);
  void pass_sum_on(std::int64_t now);
  void receive_result(std::int64_t now);
  void pass_result_on(std::int64_t now);
  void add(std::int64_t now);
  void copy_out(std::int64_t now);
  void wait_until_passed_on(std::int64_t chunk);
  void wait_until_copied_out(std::int64_t now);

  void signal_tick(std::int64_t now);
  void wait_for_tick(int node_rank, std::int64_t tick);

  Builder& b_;
  const Shape& s_;
  const Result result_;
  const int node_, node_rank_;
  const int ranks_;  // number of ranks on this node
  const std::int64_t most_, chunks_;
  // Number of ticks from the addition of this node's operands to a chunk until the chunk's result
  // arrives.
  const std::int64_t lag_;
  Location sums_, results_;
};

}  // namespace weft
