// Hierarchical allgather(v): blocks circulate between the nodes. Each received block is put into
// the node's shared memory for its ranks while the next one is in transit. If all nodes have
// equally many ranks, each rank sends the blocks of the ranks with its own node rank; otherwise, or
// with one leader per node, the first rank of each node sends all blocks. Each block goes to each
// other node once, the minimum: with blocks of n bytes, a node with m of p ranks sends at most
// (p - m) n bytes and receives as many.
// Kandalla, Subramoni, Santhanaraman, Koop, Panda, Designing multi-leader-based allgather
// algorithms for multi-core clusters, IPDPS 2009 workshops
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class Allgather {
 public:
  // each_carries: each rank sends; all nodes must then have equally many ranks.
  Allgather(Builder& b, bool each_carries)
      : b_(b),
        s_(b.shape()),
        nodes_(*s_.nodes),
        here_(nodes_.ranks(node_of(s_))),
        each_carries_(each_carries),
        piece_(std::min(longest_block_bytes(), b.tuning().chunk_bytes)),
        chunk_(b, pieces(), piece_, 1, 1) {}

  void run() {
    copy_own_block(b_);
    if (!each_carries_) show(0);
    b_.end_round();
    for (int wave = 1; wave < nodes_.count(); ++wave) {
      if (carries()) pass_on(wave);
      if (wave > 1 || each_carries_) show(wave - 1);
      b_.end_round();
    }
    show(nodes_.count() - 1);
  }

 private:
  // Returns the node whose blocks arrive in this wave. In wave 0 the node's own blocks are put into
  // shared memory.
  int origin(int wave) const { return ring_at(node_of(s_), -wave, nodes_.count()); }
  bool carries() const { return each_carries_ || s_.rank == here_[0]; }
  bool each_shows(int wave) const { return each_carries_ || wave == 0; }

  std::int64_t block_bytes(int rank) const { return payload_bytes(s_, incoming(s_, rank)); }
  std::int64_t longest_block_bytes() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < s_.size; ++rank) most = std::max(most, block_bytes(rank));
    return most;
  }

  // Returns the number of pieces of a block of this many bytes. Blocks that several ranks copy into
  // shared memory at the same time advance together, piece by piece.
  std::int64_t pieces(std::int64_t bytes) const { return (bytes + piece_ - 1) / piece_; }
  std::int64_t pieces() const {
    std::int64_t all = 0;
    for (int wave = 0; wave < nodes_.count(); ++wave) {
      std::int64_t most = 0, sum = 0;
      for (int rank : nodes_.ranks(origin(wave))) {
        most = std::max(most, pieces(block_bytes(rank)));
        sum += pieces(block_bytes(rank));
      }
      all += each_shows(wave) ? most : sum;
    }
    return all;
  }

  // Returns the blocks of a node that this rank sends on, with contiguous ones merged. Blocks of an
  // allgatherv are not merged, since they may lie apart on the receiver.
  std::vector<Operand> carried(int node) const {
    if (each_carries_) return {incoming(s_, carrier(node))};
    std::vector<int> ranks = nodes_.ranks(node).listed();
    std::sort(ranks.begin(), ranks.end());
    std::vector<Operand> blocks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Operand block = incoming(s_, ranks[i]);
      if (i > 0 && ranks[i] == ranks[i - 1] + 1 && s_.recv_blocks.empty())
        blocks.back().count += block.count;
      else
        blocks.push_back(block);
    }
    return blocks;
  }

  int carrier(int node) const {
    return nodes_.ranks(
        node)[each_carries_ ? static_cast<std::size_t>(node_rank_of(s_, s_.rank)) : 0];
  }

  void pass_on(int wave) {
    for (const Operand& block : carried(origin(wave))) b_.recv(carrier(origin(1)), block);
    for (const Operand& block : carried(origin(wave - 1))) b_.send(carrier(origin(-1)), block);
  }

  void show(int wave) {
    if (here_.size() == 1) return;
    const Nodes::Ranks ranks = nodes_.ranks(origin(wave));
    if (!each_shows(wave)) {
      for (int rank : ranks) show({{here_[0], rank}});
      return;
    }
    std::vector<Shown> all;
    for (std::size_t i = 0; i < here_.size(); ++i)
      all.push_back({here_[ring_node_rank(i)], ranks[ring_node_rank(i)]});
    show(all);
  }
  // Returns the i-th node rank in the order in which this rank copies, which begins with its own.
  std::size_t ring_node_rank(std::size_t i) const {
    return (static_cast<std::size_t>(node_rank_of(s_, s_.rank)) + i) % here_.size();
  }

  struct Shown {
    int by;
    int block;
  };

  void show(const std::vector<Shown>& all) {
    std::int64_t longest = 0;
    for (const Shown& shown : all) longest = std::max(longest, block_bytes(shown.block));
    std::vector<PackedBlock> blocks;
    for (const Shown& shown : all) {
      blocks.emplace_back(b_, incoming(s_, shown.block), longest > piece_);
      if (shown.by == s_.rank) blocks.back().pack();
    }
    const auto length = [&](const Shown& shown, std::int64_t begin) {
      return std::clamp<std::int64_t>(block_bytes(shown.block) - begin, 0, piece_);
    };
    for (std::int64_t begin = 0; begin < longest; begin += piece_, chunk_.next()) {
      const bool shows = all[0].by == s_.rank;
      if (shows) {
        for (int rank : here_) chunk_.wait_until_read(rank);
        blocks[0].copy_to(chunk_.of(s_.rank), begin, length(all[0], begin));
      }
      chunk_.signal();
      for (std::size_t n = shows ? 1 : 0; n < all.size(); ++n) {
        chunk_.wait(all[n].by);
        blocks[n].copy_from(chunk_.of(all[n].by), begin, length(all[n], begin));
      }
    }
    for (std::size_t n = 0; n < all.size(); ++n)
      if (all[n].by != s_.rank) blocks[n].unpack();
  }

  Builder& b_;
  const Shape& s_;
  const Nodes& nodes_;
  const Nodes::Ranks here_;
  const bool each_carries_;
  const std::int64_t piece_;
  NodeChunks chunk_;  // the chunks of shared memory; each holds one piece of a block
};

// Returns whether all blocks have data. An empty block sends no message, so other ranks would not
// learn from it that its owner has entered the collective.
bool has_no_empty_block(const Shape& s) {
  for (int rank = 0; rank < s.size; ++rank)
    if (payload_bytes(s, incoming(s, rank)) == 0) return false;
  return true;
}

void build(Builder& b, bool each_carries) {
  if (agreed_bytes(b.shape()) == 0) return;
  if (has_no_empty_block(b.shape())) b.synchronizes();
  Allgather(b, each_carries).run();
}

}  // namespace

void allgather_hierarchical(Builder& b) {
  build(b, b.shape().nodes->all_alike());
}

void allgather_hierarchical_one_leader(Builder& b) {
  build(b, false);
}

}  // namespace weft
