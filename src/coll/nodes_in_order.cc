// Implements NodesInOrder (nodes_in_order.h). A rank signals once per tick. The lowest rank of a
// node signals at the tick's end, when its messages have completed; the others signal when they
// have added their operand to the tick's chunk. A rank's counter has these meanings:
// - tick t of a rank other than the lowest: it has added to chunk t, and has copied out all results
// up to that of tick t - 1;
// - tick t of the lowest rank: it has sent chunk t - 1, has received the result of chunk t - lag,
// and has sent the result before that.
#include "coll/nodes_in_order.h"

#include <algorithm>

namespace weft {

NodesInOrder::NodesInOrder(Builder& b, Result result)
    : b_(b),
      s_(b.shape()),
      result_(result),
      node_(node_of(s_)),
      node_rank_(node_rank_of(s_, s_.rank)),
      ranks_(ranks_here(s_)),
      most_(std::clamp<std::int64_t>(kChunk_bytes / b.extent(Unit::recv), 1, s_.recv.count)),
      chunks_((s_.recv.count + most_ - 1) / most_),
      lag_(kTicksPerNode * node_) {
  const std::int64_t depth = std::min(chunks_, kDepth);
  const auto make = [&] {
    if (ranks_ == 1) return b.temp(depth * most_, Unit::recv);
    return b.node(depth * most_ * b.extent(Unit::recv));
  };
  sums_ = make();
  if (results_come_here()) results_ = make();
}

void NodesInOrder::run() {
  const std::int64_t end = chunks_ + 1 + (is_for_all() || takes_result() ? lag_ : 0);
  for (std::int64_t now = -1; now < end; ++now) tick(now);
}

std::int64_t NodesInOrder::count(std::int64_t chunk) const {
  return std::min(most_, s_.recv.count - chunk * most_);
}

Location NodesInOrder::in_turn(Location memory, std::int64_t chunk) const {
  return memory + chunk % kDepth * most_ * b_.extent(Unit::recv);
}

// Adds the steps of one tick. Ticks begin at -1, in which the first chunk arrives.
void NodesInOrder::tick(std::int64_t now) {
  receive_sum(now);
  pass_sum_on(now);
  receive_result(now);
  pass_result_on(now);
  add(now);
  if (!is_lowest()) signal_tick(now);
  copy_out(now);
  b_.end_round();
  if (is_lowest()) signal_tick(now);
}

void NodesInOrder::receive_sum(std::int64_t now) {
  const std::int64_t chunk = now + 1;
  if (!is_highest() || !has_node_behind() || !exists(chunk)) return;
  wait_until_passed_on(chunk - kDepth);
  b_.recv(lowest_on(node_ + 1), sum(chunk), count(chunk));
}

void NodesInOrder::pass_sum_on(std::int64_t now) {
  const std::int64_t chunk = now - 1;
  if (!is_lowest() || !has_node_before() || !exists(chunk)) return;
  b_.send(highest_on(node_ - 1), sum(chunk), count(chunk));
}

void NodesInOrder::receive_result(std::int64_t now) {
  const std::int64_t chunk = now - lag_;
  if (!has_node_before() || !exists(chunk)) return;
  if (is_for_all() && is_lowest()) {
    wait_until_copied_out(now);
    b_.recv(lowest_on(node_ - 1), result(chunk), count(chunk));
  }
  if (!is_for_all() && takes_result())
    b_.recv(0, Location{Buffer::recv, offset(chunk)}, count(chunk));
}

void NodesInOrder::pass_result_on(std::int64_t now) {
  const std::int64_t chunk = now - lag_ - 1;
  if (!is_lowest() || !exists(chunk)) return;
  if (is_for_all() && has_node_behind()) b_.send(lowest_on(node_ + 1), result(chunk), count(chunk));
  if (root_is_elsewhere() && !has_node_before()) b_.send(s_.root, result(chunk), count(chunk));
}

void NodesInOrder::add(std::int64_t now) {
  if (!exists(now)) return;
  const Location input = b_.input() + offset(now), here = sum(now);
  const bool begins = is_highest() && !has_node_behind();
  const bool ends = is_lowest() && !has_node_before();
  if (!is_highest()) wait_for_tick(node_rank_ + 1, now);
  if (begins) wait_until_passed_on(now - kDepth);
  if (begins)
    b_.copy(input, here, count(now));
  else
    b_.reduce(input, here, ends ? result(now) : here, count(now));
}

void NodesInOrder::copy_out(std::int64_t now) {
  const std::int64_t chunk = now - lag_ - 1;
  if (!takes_result() || !results_come_here() || !exists(chunk)) return;
  if (!is_lowest()) wait_for_tick(0, now - 1);
  b_.copy(result(chunk), Location{Buffer::recv, offset(chunk)}, count(chunk));
}

// Waits until the lowest rank has sent a chunk to the previous node. On the first node, which sends
// none, waits until the rank has reduced the chunk into the result.
void NodesInOrder::wait_until_passed_on(std::int64_t chunk) {
  if (exists(chunk)) wait_for_tick(0, chunk + (has_node_before() ? 1 : 0));
}

// Waits until all ranks have copied out the result that arrived kDepth ticks before, since the one
// of this tick overwrites it. While operands are still being added, the wait for the rank above
// implies this.
void NodesInOrder::wait_until_copied_out(std::int64_t now) {
  if (now - lag_ < kDepth || exists(now - 1)) return;
  for (int node_rank = 1; node_rank < ranks_; ++node_rank) wait_for_tick(node_rank, now - 1);
}

// Signals the end of this rank's part in a tick. Ticks in which nothing is added and no result
// arrives have no signal, since nobody waits for it.
void NodesInOrder::signal_tick(std::int64_t now) {
  const std::int64_t end = chunks_ + (is_for_all() ? lag_ : 0);
  if (ranks_ > 1 && now >= 0 && now < end) b_.signal();
}

void NodesInOrder::wait_for_tick(int node_rank, std::int64_t tick) {
  if (node_rank != node_rank_) b_.wait(rank_at(node_rank), static_cast<std::uint32_t>(tick + 1));
}

}  // namespace weft
