// Hierarchical alltoall: all data from one node to another form one message. The ranks of a node
// write their blocks to its shared memory, ordered by destination node and rank. For each other
// node one rank sends that node's part and receives into shared memory. Then all ranks copy their
// blocks out. With m ranks per node, k - 1 messages instead of (k - 1) m^2 leave each of k nodes.
// It suits short blocks. Long blocks are divided into pieces, and the next piece is written while
// one is in transit. With one leader per node, one rank exchanges the parts of all other nodes,
// with up to kMostAtOnce nodes at a time. Träff, Rougier, MPI collectives and datatypes for
// hierarchical all-to-all communication, EuroMPI/ASIA 2014
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "coll/packer.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// The most bytes of one rank's outgoing blocks in one exchange between nodes; as many bytes arrive.
// Two exchanges use separate shared memory in turn, so a rank needs four times as much.
constexpr std::int64_t kOfOneRank_bytes = 60 * 1024;

// The most nodes with which a rank exchanges data at a time. It is MPICH's limit for messages of an
// alltoall (MPIR_CVAR_ALLTOALL_THROTTLE): more at once would only wait in the network.
constexpr int kMostAtOnce = 32;

class Alltoall {
 public:
  Alltoall(Builder& b, bool one_leads)
      : b_(b),
        s_(b.shape()),
        one_leads_(one_leads),
        nodes_(*s_.nodes),
        here_(nodes_.ranks(node_of(s_))),
        node_rank_(node_rank_of(s_, s_.rank)),
        bytes_(s_.recv.bytes()),
        piece_(std::clamp<std::int64_t>(kOfOneRank_bytes / s_.size, 1, bytes_)),
        turns_((bytes_ + piece_ - 1) / piece_) {
    const std::int64_t of_all = ranks_here(s_) * s_.size * piece_;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(turns_, 2); ++i) {
      going_.push_back(is_alone() ? b.temp(of_all, Unit::byte) : b.node(of_all));
      coming_.push_back(is_alone() ? b.temp(of_all, Unit::byte) : b.node(of_all));
    }
    for (int rank = 0; rank < s_.size; ++rank) {
      const bool is_cut = turns_ > 1 && rank != s_.rank;
      given_.emplace_back(b, outgoing(s_, rank), is_cut);
      taken_.emplace_back(b, incoming(s_, rank), is_cut);
    }
  }

  void run() {
    for (PackedBlock& block : given_) block.pack();
    copy_in(0);
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      exchange(turn);
      if (turn + 1 < turns_) copy_in(turn + 1);
      copy_out(turn, node_of(s_));
      if (turn > 0) copy_out_of_others(turn - 1);
      b_.end_round();
      signal();
    }
    copy_out_of_others(turns_ - 1);
    for (PackedBlock& block : taken_) block.unpack();
    copy_own_block(b_);
  }

 private:
  bool is_alone() const { return here_.size() == 1; }
  void signal() {
    if (!is_alone()) b_.signal();
  }

  std::int64_t length(std::int64_t turn) const { return std::min(piece_, bytes_ - turn * piece_); }
  // Returns the rank on `node` that exchanges data with node `other`.
  int speaker(int node, int other) const {
    return nodes_.rank(node, one_leads_ ? 0 : other % nodes_.ranks_on(node));
  }
  bool speaks_with(int node) const {
    return node != node_of(s_) && speaker(node_of(s_), node) == s_.rank;
  }
  bool speaks() const {
    for (int node = 0; node < nodes_.count(); ++node)
      if (speaks_with(node)) return true;
    return false;
  }

  // Returns where the data to or from a node lie in shared memory. The areas follow each other in
  // the order of nodes, and each holds the blocks of all ranks of this node.
  Location area(const std::vector<Location>& areas, std::int64_t turn, int node) const {
    std::int64_t blocks = 0;
    for (int before = 0; before < node; ++before) blocks += nodes_.ranks_on(before);
    return areas[static_cast<std::size_t>(turn % 2)] + blocks * ranks_here(s_) * length(turn);
  }
  std::int64_t area_bytes(std::int64_t turn, int node) const {
    return nodes_.ranks_on(node) * ranks_here(s_) * length(turn);
  }

  // written() returns the value of a rank's counter once it has written its blocks for an exchange.
  // ended() returns the value once the exchange has ended: the rank's messages have completed, and
  // it has written its blocks for the next exchange and copied out those of the previous one. A
  // rank signals twice per exchange.
  std::uint32_t written(std::int64_t turn) const {
    return static_cast<std::uint32_t>(std::max<std::int64_t>(2 * turn, 1));
  }
  std::uint32_t ended(std::int64_t turn) const {
    return static_cast<std::uint32_t>(std::min(2 * turn + 3, 2 * turns_));
  }
  void wait_for_all(std::uint32_t value) {
    for (int rank : here_)
      if (rank != s_.rank) b_.wait(rank, value);
  }
  void wait_for(int rank, std::uint32_t value) {
    if (rank != s_.rank) b_.wait(rank, value);
  }

  void copy_in(std::int64_t turn) {
    if (turn > 1) wait_for_all(ended(turn - 2));
    for (int node = 0; node < nodes_.count(); ++node) {
      const Location begin =
          area(going_, turn, node) + node_rank_ * nodes_.ranks_on(node) * length(turn);
      Packer row(b_, Packer::Way::pack, begin);
      for (int rank : nodes_.ranks(node)) {
        const Operand piece =
            given_[static_cast<std::size_t>(rank)].piece(turn * piece_, length(turn));
        if (rank == s_.rank)
          row.skip({piece.at, length(turn), Unit::byte});
        else
          row.add(piece);
      }
      row.finish();
    }
    signal();
  }

  // Exchanges the data with other nodes, of which the last kMostAtOnce are still in transit on
  // return. In each round all nodes send to those behind them by the same distances in the ring of
  // nodes, and receive from those before them.
  void exchange(std::int64_t turn) {
    if (!speaks()) return;
    wait_for_all(written(turn));
    if (turn > 1) wait_for_all(ended(turn - 1));
    if (turn == 0) b_.end_round();
    for (int distance = 1; distance < nodes_.count(); ++distance) {
      if (distance > 1 && distance % kMostAtOnce == 1) b_.end_round();
      const int from = ring_at(node_of(s_), -distance, nodes_.count());
      const int to = ring_at(node_of(s_), distance, nodes_.count());
      if (speaks_with(from))
        b_.recv(speaker(from, node_of(s_)), area(coming_, turn, from), area_bytes(turn, from),
                Unit::byte);
      if (speaks_with(to))
        b_.send(speaker(to, node_of(s_)), area(going_, turn, to), area_bytes(turn, to), Unit::byte);
    }
  }

  void copy_out_of_others(std::int64_t turn) {
    for (int node = 0; node < nodes_.count(); ++node)
      if (node != node_of(s_)) copy_out(turn, node);
  }
  void copy_out(std::int64_t turn, int node) {
    const bool own = node == node_of(s_);
    if (!own) wait_for(speaker(node_of(s_), node), ended(turn));
    Location at = area(own ? going_ : coming_, turn, node) + node_rank_ * length(turn);
    for (int rank : nodes_.ranks(node)) {
      const PackedBlock& block = taken_[static_cast<std::size_t>(rank)];
      if (own) wait_for(rank, written(turn));
      if (rank != s_.rank)
        b_.copy({at, length(turn), Unit::byte}, block.piece(turn * piece_, length(turn)));
      at = at + ranks_here(s_) * length(turn);
    }
  }

  Builder& b_;
  const Shape& s_;
  const bool one_leads_;  // the first rank of each node exchanges all messages
  const Nodes& nodes_;
  const Nodes::Ranks here_;
  const int node_rank_;
  const std::int64_t bytes_;  // bytes of one block
  const std::int64_t piece_;
  const std::int64_t turns_;
  // Shared memory of outgoing and incoming blocks, each for even and for odd exchanges.
  std::vector<Location> going_, coming_;
  std::vector<PackedBlock> given_, taken_;  // blocks to and from each rank, indexed by rank
};

void build(Builder& b, bool one_leads) {
  if (b.shape().recv.bytes() == 0) return;
  b.synchronizes();
  Alltoall(b, one_leads).run();
}

}  // namespace

void alltoall_hierarchical(Builder& b) {
  build(b, false);
}

void alltoall_hierarchical_one_leader(Builder& b) {
  build(b, true);
}

}  // namespace weft
