// Implements NodeExchange (node_exchange.h). A rank signals twice in each turn, even if it neither
// gives nor takes, so that the counters of all ranks mean the same.
#include "coll/node_exchange.h"

#include <algorithm>

#include "coll/own_block.h"
#include "coll/packer.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// The most nodes with which a rank exchanges data at a time. It is MPICH's limit for messages of an
// alltoall (MPIR_CVAR_ALLTOALL_THROTTLE): more at once would only wait in the network.
constexpr int kMostAtOnce = 32;

}  // namespace

std::vector<int> NodeExchange::Side::ranks(int node) const {
  if (!only_root_) return s_.nodes->ranks(node).listed();
  return on(node) > 0 ? std::vector<int>{s_.root} : std::vector<int>{};
}

NodeExchange::NodeExchange(Builder& b, Speaker speaker)
    : b_(b),
      s_(b.shape()),
      speaker_(speaker),
      nodes_(*s_.nodes),
      here_(nodes_.ranks(node_of(s_))),
      node_(node_of(s_)),
      givers_(s_, s_.kind == Kind::scatter),
      takers_(s_, s_.kind == Kind::gather),
      bytes_(*agreed_bytes(s_) / s_.size),
      piece_(std::clamp<std::int64_t>(most_bytes(), 1, bytes_)),
      turns_((bytes_ + piece_ - 1) / piece_) {
  const std::int64_t given_bytes = std::int64_t{givers_.on(node_)} * takers_.in_all() * piece_;
  const std::int64_t taken_bytes = std::int64_t{givers_.in_all()} * takers_.on(node_) * piece_;
  const auto memory = [&](std::int64_t bytes) {
    return is_alone() ? b.temp(bytes, Unit::byte) : b.node(bytes);
  };
  for (std::int64_t i = 0; i < std::min<std::int64_t>(turns_, 2); ++i) {
    going_.push_back(memory(given_bytes));
    coming_.push_back(memory(taken_bytes));
  }
  for (int rank = 0; rank < s_.size; ++rank) {
    const bool is_cut = turns_ > 1 && rank != s_.rank;
    const bool gives = givers_.has(s_.rank) && takers_.has(rank);
    const bool takes = takers_.has(s_.rank) && givers_.has(rank);
    given_.emplace_back(b, gives ? outgoing(s_, rank) : Operand{}, is_cut);
    taken_.emplace_back(b, takes ? incoming(s_, rank) : Operand{}, is_cut);
  }
}

// Returns the most bytes of a piece, such that the four areas of each node fit into its memory. In
// an alltoall a rank has as many outgoing as incoming pieces. Otherwise the node of the root has
// those of all ranks.
std::int64_t NodeExchange::most_bytes() const {
  constexpr std::int64_t kOfOneRank_bytes = 60 * 1024;
  if (s_.kind == Kind::alltoall) return kOfOneRank_bytes / s_.size;
  const std::int64_t of_root = 2 * kOfOneRank_bytes * nodes_.ranks_on(nodes_.of(s_.root));
  return std::min(of_root / s_.size, b_.tuning().chunk_bytes);
}

void NodeExchange::run() {
  for (PackedBlock& block : given_) block.pack();
  copy_in(0);
  for (std::int64_t turn = 0; turn < turns_; ++turn) {
    exchange(turn);
    if (turn + 1 < turns_) copy_in(turn + 1);
    copy_out(turn, node_);
    if (turn > 0) copy_out_of_others(turn - 1);
    b_.end_round();
    signal();
  }
  copy_out_of_others(turns_ - 1);
  for (PackedBlock& block : taken_) block.unpack();
  if (givers_.has(s_.rank) && takers_.has(s_.rank)) copy_own_block(b_);
}

void NodeExchange::signal() {
  if (!is_alone()) b_.signal();
}

std::int64_t NodeExchange::length(std::int64_t turn) const {
  return std::min(piece_, bytes_ - turn * piece_);
}

// Returns the rank on `node` that exchanges data with node `other`.
int NodeExchange::speaker(int node, int other) const {
  return nodes_.rank(node, speaker_ == Speaker::first ? 0 : other % nodes_.ranks_on(node));
}

bool NodeExchange::speaks_with(int node) const {
  return node != node_ && speaker(node_, node) == s_.rank;
}

bool NodeExchange::speaks() const {
  for (int node = 0; node < nodes_.count(); ++node)
    if (speaks_with(node)) return true;
  return false;
}

std::int64_t NodeExchange::bytes(std::int64_t turn, int from, int to) const {
  return std::int64_t{givers_.on(from)} * takers_.on(to) * length(turn);
}

Location NodeExchange::going(std::int64_t turn, int node) const {
  Location at = going_[static_cast<std::size_t>(turn % 2)];
  for (int before = 0; before < node; ++before) at = at + bytes(turn, node_, before);
  return at;
}

Location NodeExchange::coming(std::int64_t turn, int node) const {
  Location at = coming_[static_cast<std::size_t>(turn % 2)];
  for (int before = 0; before < node; ++before) at = at + bytes(turn, before, node_);
  return at;
}

// written() returns the value of a rank's counter once it has written its blocks for a turn.
// ended() returns the value once the turn has ended: the rank's messages have completed, it has
// copied out its node's blocks of this turn and those of others of the previous turn, and has
// written its blocks for the next turn.
std::uint32_t NodeExchange::written(std::int64_t turn) const {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(2 * turn, 1));
}
std::uint32_t NodeExchange::ended(std::int64_t turn) const {
  return static_cast<std::uint32_t>(std::min(2 * turn + 3, 2 * turns_));
}

void NodeExchange::wait_for(const std::vector<int>& ranks, std::uint32_t value) {
  for (const int rank : ranks) wait_for(rank, value);
}

void NodeExchange::wait_for(int rank, std::uint32_t value) {
  if (rank != s_.rank) b_.wait(rank, value);
}

// Waits until nobody needs the blocks of a turn any more that this node's givers have written: the
// takers here, and the first rank if it sends for all. Otherwise the takers are the ones that send.
void NodeExchange::wait_until_read(std::int64_t turn) {
  if (sends() && speaker_ == Speaker::first) wait_for(here_[0], ended(turn));
  wait_for(takers_.ranks(node_), ended(turn));
}

void NodeExchange::copy_in(std::int64_t turn) {
  if (givers_.has(s_.rank)) {
    if (turn > 1) wait_until_read(turn - 2);
    write(turn);
  }
  signal();
}

void NodeExchange::write(std::int64_t turn) {
  for (int node = 0; node < nodes_.count(); ++node) {
    const std::int64_t row_bytes = takers_.on(node) * length(turn);
    Packer row(b_, Packer::Way::pack, going(turn, node) + givers_.number(s_.rank) * row_bytes);
    for (const int rank : takers_.ranks(node)) {
      const Operand piece = given(rank).piece(turn * piece_, length(turn));
      if (rank == s_.rank)
        row.skip({piece.at, length(turn), Unit::byte});
      else
        row.add(piece);
    }
    row.finish();
  }
}

// Exchanges the data with other nodes, of which the last kMostAtOnce are still in transit on
// return. In each round all nodes send to those behind them by the same distances in the ring of
// nodes, and receive from those before them.
void NodeExchange::exchange(std::int64_t turn) {
  if (!speaks()) return;
  if (sends()) wait_for(givers_.ranks(node_), written(turn));
  if (receives() && turn > 1) wait_for(takers_.ranks(node_), ended(turn - 1));
  if (turn == 0) b_.end_round();
  for (int distance = 1; distance < nodes_.count(); ++distance) {
    if (distance > 1 && distance % kMostAtOnce == 1) b_.end_round();
    const int from = ring_at(node_, -distance, nodes_.count());
    const int to = ring_at(node_, distance, nodes_.count());
    if (speaks_with(from))
      b_.recv(speaker(from, node_), coming(turn, from), bytes(turn, from, node_), Unit::byte);
    if (speaks_with(to))
      b_.send(speaker(to, node_), going(turn, to), bytes(turn, node_, to), Unit::byte);
  }
}

void NodeExchange::copy_out_of_others(std::int64_t turn) {
  for (int node = 0; node < nodes_.count(); ++node)
    if (node != node_) copy_out(turn, node);
}

void NodeExchange::copy_out(std::int64_t turn, int node) {
  if (!takers_.has(s_.rank) || givers_.on(node) == 0) return;
  const bool own = node == node_;
  if (!own) wait_for(speaker(node_, node), ended(turn));
  Location at =
      (own ? going(turn, node) : coming(turn, node)) + takers_.number(s_.rank) * length(turn);
  for (const int rank : givers_.ranks(node)) {
    if (own) wait_for(rank, written(turn));
    if (rank != s_.rank)
      b_.copy({at, length(turn), Unit::byte}, taken(rank).piece(turn * piece_, length(turn)));
    at = at + takers_.on(node_) * length(turn);
  }
}

}  // namespace weft
