// Implements NodeSums (node_sums.h). A rank signals each time it has added its operand to another
// leader's block, and each time it has published a result. All ranks process the same chunks in the
// same order, so that each knows the meaning of another's counter: first the rank adds to chunk 0;
// then, for each i, it adds to chunk i + 1 and publishes chunk i.
#include "coll/node_sums.h"

#include <algorithm>

#include "coll/reduce_in_order.h"
#include "patterns/ring.h"

namespace weft {
namespace {

std::int64_t round_up(std::int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::int64_t most_elements(const Builder& b) {
  const std::int64_t bytes = std::min(NodeSums::kChunk_bytes, 2 * b.tuning().chunk_bytes);
  return std::max<std::int64_t>(bytes / b.extent(Unit::recv), 1);
}

}  // namespace

NodeSums::NodeSums(Builder& b, int leaders, Result result, int leader_node_rank)
    : b_(b),
      ranks_(ranks_here(b.shape())),
      node_rank_(node_rank_of(b.shape(), b.shape().rank)),
      leaders_(leaders),
      leader_node_rank_(leader_node_rank),
      result_(result),
      block_(leaders > 1 ? node_rank_ : 0),
      blocks_{b.shape().recv.count, leaders},
      most_(std::min(blocks_.length(0), most_elements(b))),
      chunks_((blocks_.length(0) + most_ - 1) / most_),
      all_at_the_leader_(leaders == 1 && chunks_ == 1),
      in_slots_(all_at_the_leader_ && most_ * b.extent(Unit::recv) <= kSlotPayloadBytes) {
  if (ranks_ == 1 || in_slots_) return;
  stride_ = round_up(most_ * b.extent(Unit::recv));
  const int owners = all_at_the_leader_ ? ranks_ : leaders_;
  memory_ = b.node(std::min(chunks_, kDepth) * owners * stride_);
}

std::int64_t NodeSums::offset_of(int block, std::int64_t chunk) const {
  return (blocks_.begin(block) + chunk * most_) * b_.extent(Unit::recv);
}

std::int64_t NodeSums::count_of(int block, std::int64_t chunk) const {
  return std::clamp<std::int64_t>(blocks_.length(block) - chunk * most_, 0, most_);
}

Location NodeSums::memory_of(int index, std::int64_t chunk) const {
  if (in_slots_) return b_.slot(index);
  const int owners = all_at_the_leader_ ? ranks_ : leaders_;
  return memory_ + (chunk % kDepth * owners + index) * stride_;
}

Location NodeSums::shared(std::int64_t chunk) const {
  if (ranks_ == 1) return {Buffer::recv, offset_of(block_, chunk)};
  return memory_of(all_at_the_leader_ ? leader_node_rank_ : block_, chunk);
}

void NodeSums::reduce(std::int64_t chunk, Location own) {
  if (ranks_ == 1) return b_.copy(b_.input() + offset_of(block_, chunk), own, count(chunk));
  if (all_at_the_leader_) return reduce_all_at_the_leader(own);
  wait_until_unused(chunk - kDepth);
  for (int step = 0; step < ranks_; ++step) {
    const int leader = ring_at(node_rank_, step + 1, ranks_);
    if (is_leader(leader)) add_to_block(leaders_ > 1 ? leader : 0, chunk, own);
  }
}

void NodeSums::reduce_all_at_the_leader(Location own) {
  if (!leads()) {
    b_.copy(b_.input(), memory_of(node_rank_, 0), most_);
    b_.signal();
    return;
  }
  const auto at = [&](int node_rank) {
    if (node_rank == node_rank_) return b_.input();
    b_.wait(rank_at(node_rank), added(node_rank, 0, 1));
    return memory_of(node_rank, 0);
  };
  reduce_in_order(b_, ranks_, at, own, most_);
}

void NodeSums::add_to_block(int block, std::int64_t chunk, Location own) {
  const int leader = leader_of(block);
  const int above = ring_at(node_rank_, 1, ranks_);
  const Location input = b_.input() + offset_of(block, chunk), sum = memory_of(block, chunk);
  const std::int64_t count = count_of(block, chunk);
  if (above == leader) {
    b_.copy(input, sum, count);
  } else {
    // The rank above adds to this block as the nth block in a chunk, not counting its own.
    const int nth = leaders_ > 1 ? ring_at(leader, -above, ranks_) : 1;
    if (count > 0) b_.wait(rank_at(above), added(above, chunk, nth));
    b_.reduce(input, sum, leader == node_rank_ ? own : sum, count);
  }
  if (leader != node_rank_) b_.signal();
}

// Waits until all ranks have read this chunk, so that its memory can be reused for a later one.
void NodeSums::wait_until_unused(std::int64_t chunk) const {
  const bool begins_a_block = leaders_ > 1 || ring_at(node_rank_, 1, ranks_) == leader_node_rank_;
  if (chunk < 0 || !begins_a_block) return;
  if (result_ == Result::for_the_leader)
    return b_.wait(rank_at(leader_node_rank_), published(leader_node_rank_, chunk));
  for (int node_rank = 0; node_rank < ranks_; ++node_rank)
    if (node_rank != node_rank_) b_.wait(rank_at(node_rank), published(node_rank, chunk + 1));
}

void NodeSums::publish() {
  if (ranks_ > 1 && publishes(node_rank_)) b_.signal();
}

void NodeSums::copy_out(std::int64_t chunk) {
  if (ranks_ == 1) return;
  for (int i = 0; i < leaders_; ++i) {
    const int block = leaders_ > 1 ? ring_at(node_rank_, i, ranks_) : 0;
    const int leader = leader_of(block);
    const std::int64_t count = count_of(block, chunk);
    if (count == 0) continue;
    if (leader != node_rank_) b_.wait(rank_at(leader), published(leader, chunk));
    const Location at = memory_of(all_at_the_leader_ ? leader_node_rank_ : block, chunk);
    b_.copy(at, Location{Buffer::recv, offset_of(block, chunk)}, count);
  }
}

bool NodeSums::publishes(int node_rank) const {
  const bool reused = chunks_ > kDepth;
  return is_leader(node_rank) ? reused || result_ == Result::for_all
                              : reused && result_ == Result::for_all;
}

std::uint32_t NodeSums::added(int node_rank, std::int64_t chunk, int nth) const {
  const std::int64_t before = std::max<std::int64_t>(chunk - 1, 0);
  return static_cast<std::uint32_t>(chunk * additions(node_rank) +
                                    (publishes(node_rank) ? before : 0) + nth);
}

std::uint32_t NodeSums::published(int node_rank, std::int64_t chunk) const {
  return static_cast<std::uint32_t>(std::min(chunk + 2, chunks_) * additions(node_rank) + chunk +
                                    1);
}

}  // namespace weft
