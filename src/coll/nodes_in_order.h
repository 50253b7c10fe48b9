// NodesInOrder: x0 op (x1 op (… op xp-1)) over nodes on which ranks are consecutive, chunk after
// chunk along a chain. From the last node to the first, a chunk goes through the ranks of each node
// in its memory, from the highest to the lowest, and each adds to what the ranks above it left. The
// sum goes back the same way, or to the root alone. Everything is paced by ticks: in one, the
// lowest rank of a node passes a chunk on to the node before, while the next chunk goes through its
// own and the one after comes from the node behind. A result goes the other way in the same ticks,
// so that both directions of a link are in use. Pjesivac-Grbovic et al., Cluster Computing 10(2),
// 2007 (pipelined chain); Jocksch, Piccinali, shared-memory persistent allreduce (copy in with
// reduction, chunks)
#pragma once

#include <cstdint>

#include "schedule/builder.h"

namespace weft {

class NodesInOrder {
 public:
  // all: every rank gets the sum; root: that of the call.
  enum class Result : std::uint8_t { for_all, for_the_root };

  NodesInOrder(Builder& b, Result result);

  void run();

 private:
  // Elements of 128 KiB, as in NodeSums: each tick between nodes begins only when a rank gets to
  // it.
  static constexpr std::int64_t kChunk_bytes = 128 * 1024;
  // A chunk is added to while one comes and one leaves; a result is copied out by the slowest rank
  // while one comes and one leaves.
  static constexpr std::int64_t kDepth = 3;
  // Ticks from a chunk's passing a border between nodes to its result's: two on the way, and one
  // more, so that a rank which is late holds up nobody.
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

  // Returns where a chunk lies in memory for kDepth chunks, which they use in turn.
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
  const int ranks_;  // here
  const std::int64_t most_, chunks_;
  const std::int64_t lag_;  // ticks from adding to a chunk here to its result's coming here
  Location sums_, results_;
};

}  // namespace weft
