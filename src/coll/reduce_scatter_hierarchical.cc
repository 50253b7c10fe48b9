// Hierarchical reduce-scatter: the ranks of a node reduce their operands of a block in the node's
// shared memory. One of them sends the sum to the block's owner, which adds the sums of all nodes
// in order. The ranks of a node share the blocks by node rank, so that all of them send. One node
// after the other is the target: while the sums for it are in transit, those for the next are
// computed, and received ones are added. With blocks of n bytes, a node with m of p ranks sends (p
// - m) n bytes, the minimum, in as many messages. With one leader per node, the first rank of each
// node computes the sums of its node for all blocks, adds those of all nodes for the blocks of its
// node's ranks, and gives them to these through shared memory.
// Hasanov, Lastovetsky, J. Supercomputing 73, 2017 (hierarchical reductions)
#include <algorithm>
#include <array>
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/packer.h"
#include "coll/reduce_in_order.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// How the blocks of a node are divided: the most elements of a piece, and the number of pieces.
struct Cut {
  std::int64_t most;
  std::int64_t pieces;
};

// Returns for each node how the blocks of its ranks are divided into pieces. A chunk of shared
// memory has space for one piece of each block of the node. Each piece takes as many steps as there
// are local ranks, so pieces are as long as the memory permits.
std::vector<Cut> cuts_by_node(const Builder& b) {
  const Shape& s = b.shape();
  std::vector<Cut> all;
  for (int node = 0; node < s.nodes->count(); ++node) {
    std::int64_t longest = 0;
    for (const int rank : s.nodes->ranks(node))
      longest = std::max(longest, outgoing(s, rank).count);
    const std::int64_t ranks = s.nodes->ranks_on(node);
    const std::int64_t room = std::min(ranks * b.tuning().chunk_bytes, kNodeBytesPerRank / 2);
    const std::int64_t fitting = std::max<std::int64_t>(room / ranks / b.extent(Unit::recv), 1);
    const std::int64_t most = std::clamp<std::int64_t>(longest, 1, fitting);
    all.push_back({most, (longest + most - 1) / most});
  }
  return all;
}

// Computes this node's sums of the blocks that belong to the ranks of one target node at a time.
class NodeParts {
 public:
  NodeParts(Builder& b, bool one_leads)
      : b_(b),
        s_(b.shape()),
        one_leads_(one_leads),
        nodes_(*s_.nodes),
        extent_(b.extent(Unit::recv)),
        cuts_(cuts_by_node(b)),
        chunk_(b, chunks(), row_bytes(), 1, 1) {
    if (is_alone()) return;
    for (Location& sums : sums_) sums = b.temp(most_elements(), Unit::recv);
  }

  // Returns the rank of `node` that computes this node's sum of `block`.
  int adder(int node, int block) const {
    return nodes_.rank(node, one_leads_ ? 0 : nodes_.local_rank(block) % nodes_.ranks_on(node));
  }
  // Returns the rank that adds the sums of all nodes for a block.
  int collector(int block) const { return one_leads_ ? nodes_.rank(nodes_.of(block), 0) : block; }
  // Returns the blocks for which this rank adds the sums of all nodes.
  std::vector<int> collected() const {
    if (!one_leads_) return {s_.rank};
    return is_first() ? nodes_.ranks(node_of(s_)).listed() : std::vector<int>{};
  }
  // Returns those blocks of the ranks of `node` whose sums this rank computes.
  std::vector<int> added(int node) const {
    if (one_leads_) return is_first() ? nodes_.ranks(node).listed() : std::vector<int>{};
    std::vector<int> blocks;
    const int ranks = nodes_.ranks_on(node);
    for (int number = node_rank_of(s_, s_.rank); number < ranks; number += ranks_here(s_))
      blocks.push_back(nodes_.ranks(node)[static_cast<std::size_t>(number)]);
    return blocks;
  }
  // Returns where this node's sum of a block lies. It is valid until the sums for the node after
  // the next one are computed. A rank that is alone on its node uses its input as the sum.
  Location sum_of(int block) const {
    if (is_alone()) return outgoing(s_, block).at;
    const int turn = ring_at(nodes_.of(block), -node_of(s_) - 1, nodes_.count());
    Location at = sums_[static_cast<std::size_t>(turn % 2)];
    for (const int other : added(nodes_.of(block))) {
      if (other == block) break;
      at = at + outgoing(s_, other).count * extent_;
    }
    return at;
  }

  // Computes this node's sums of the blocks of a target node. Must be called first for the node
  // after this one, then for each further node in the ring of nodes.
  void sum_up(int node) {
    if (is_alone()) return;
    const std::vector<int> own = added(node);
    for (std::int64_t piece = 0; piece < cut(node).pieces; ++piece, chunk_.next()) {
      for (const int reader : readers_[0]) chunk_.wait_until_read(reader);
      readers_ = {std::move(readers_[1]), readers_of(node, piece)};
      const std::vector<std::int64_t> begins = show(node, piece);
      chunk_.signal();
      for (const int block : own)
        add(block, piece, begins[static_cast<std::size_t>(nodes_.local_rank(block))]);
    }
  }

  // Gives each rank of this node its block, with one leader. sums: the blocks of the node, on the
  // leader. Must follow the last sum_up().
  void give_out(Location sums) {
    const int node = node_of(s_);
    for (std::int64_t piece = 0; piece < cut(node).pieces; ++piece, chunk_.next()) {
      if (is_first()) show_results(sums, piece);
      chunk_.signal();
      if (is_first()) continue;
      chunk_.wait(nodes_.rank(node, 0));
      const Operand own = piece_of(s_.rank, piece);
      b_.copy(chunk_.of(nodes_.rank(node, 0)) + row_of(s_.rank),
              incoming(s_, s_.rank).at + piece * cut(node).most * extent_, own.count);
    }
  }

  bool is_alone() const { return ranks_here(s_) == 1; }

 private:
  bool is_first() const { return node_rank_of(s_, s_.rank) == 0; }
  // Returns the offset of the piece of a block of this node in a chunk of results.
  std::int64_t row_of(int block) const {
    return nodes_.local_rank(block) * cut(node_of(s_)).most * extent_;
  }
  // Copies a piece of each result into shared memory. The first two chunks replace operands of this
  // rank, which no other rank reads.
  void show_results(Location sums, std::int64_t piece) {
    for (const int rank : nodes_.ranks(node_of(s_))) {
      if (piece >= 2) chunk_.wait_until_read(rank);
      const Operand own = piece_of(rank, piece);
      const Location from = sums + piece * cut(node_of(s_)).most * extent_;
      if (rank != s_.rank) b_.copy(from, chunk_.of(s_.rank) + row_of(rank), own.count);
      sums = sums + outgoing(s_, rank).count * extent_;
    }
  }
  const Cut& cut(int node) const { return cuts_[static_cast<std::size_t>(node)]; }

  std::int64_t chunks() const {
    std::int64_t all = 0;
    for (const Cut& cut : cuts_) all += cut.pieces;
    return all + (one_leads_ ? cut(node_of(s_)).pieces : 0);
  }
  std::int64_t row_bytes() const {
    std::int64_t most = 0;
    for (int node = 0; node < nodes_.count(); ++node)
      most = std::max(most, nodes_.ranks_on(node) * cut(node).most * extent_);
    return most;
  }
  std::int64_t most_elements() const {
    std::int64_t most = 0;
    for (int node = 0; node < nodes_.count(); ++node) {
      std::int64_t all = 0;
      for (const int block : added(node)) all += outgoing(s_, block).count;
      most = std::max(most, all);
    }
    return most;
  }

  Operand piece_of(int block, std::int64_t piece) const {
    const Operand whole = outgoing(s_, block);
    const std::int64_t most = cut(nodes_.of(block)).most, begin = piece * most;
    return {whole.at + begin * extent_, std::clamp<std::int64_t>(whole.count - begin, 0, most),
            whole.unit};
  }
  std::vector<int> readers_of(int node, std::int64_t piece) const {
    std::vector<int> all;
    for (const int block : nodes_.ranks(node))
      if (piece_of(block, piece).count > 0) all.push_back(adder(node_of(s_), block));
    return all;
  }

  // Copies this rank's pieces of the target node's blocks into shared memory. Returns where the
  // piece of each block begins there, in bytes, indexed by node rank.
  std::vector<std::int64_t> show(int node, std::int64_t piece) {
    Packer row(b_, Packer::Way::pack, chunk_.of(s_.rank));
    std::vector<std::int64_t> begins;
    std::int64_t end = 0;
    for (const int block : nodes_.ranks(node)) {
      const Operand own = piece_of(block, piece);
      begins.push_back(end);
      if (adder(node_of(s_), block) == s_.rank)
        row.skip(own);
      else
        row.add(own);
      end += payload_bytes(b_, own);
    }
    row.finish();
    return begins;
  }

  // Adds the operands of this node's ranks for one piece of a block. begin: where the piece lies in
  // each rank's shared memory, in bytes.
  void add(int block, std::int64_t piece, std::int64_t begin) {
    const Operand own = piece_of(block, piece);
    if (own.count == 0) return;
    const auto operand = [&](int node_rank) {
      const int rank = rank_here(s_, node_rank);
      chunk_.wait(rank);
      return rank == s_.rank ? own.at : chunk_.of(rank) + begin;
    };
    const Location into = sum_of(block) + piece * cut(nodes_.of(block)).most * extent_;
    reduce_in_order(b_, ranks_here(s_), operand, into, own.count);
  }

  Builder& b_;
  const Shape& s_;
  const bool one_leads_;
  const Nodes& nodes_;
  const std::int64_t extent_;
  const std::vector<Cut> cuts_;  // indexed by node
  NodeChunks chunk_;
  // Sums of this rank's share of the blocks; target nodes use the two places alternately.
  std::array<Location, 2> sums_;
  // The ranks that read the chunk before the last one (first entry), and the last chunk (second
  // entry).
  std::array<std::vector<int>, 2> readers_;
};

// Exchanges the sums between nodes, and adds those of the blocks that this rank collects: its own
// or, with one leader, those of all ranks of its node, one after the other.
class ReduceScatter {
 public:
  ReduceScatter(Builder& b, bool one_leads)
      : b_(b),
        s_(b.shape()),
        node_(node_of(s_)),
        nodes_(s_.nodes->count()),
        parts_(b, one_leads),
        blocks_(parts_.collected()),
        count_(count_of(blocks_)),
        gives_out_(one_leads && !parts_.is_alone()),
        result_(incoming(s_, s_.rank).at),
        // If the call is in place, the result would overwrite input that is still to be read or
        // sent.
        sum_(s_.in_place || gives_out_ ? temp() : result_) {
    lower_ = has_lower() && has_higher() ? temp() : sum_;
    if (nodes_ > 2) inboxes_ = {temp(), temp()};
  }

  void run() {
    parts_.sum_up(target(1));
    b_.end_round();
    for (int wave = 1; wave < nodes_; ++wave) {
      exchange(wave);
      if (wave > 1) take_in(wave - 1);
      parts_.sum_up(target(wave + 1));
      b_.end_round();
    }
    take_in(nodes_ - 1);
    finish();
    if (gives_out_) parts_.give_out(sum_);
  }

 private:
  // Returns the node to which this one sends its sums in a wave. In the last wave that is this node
  // itself.
  int target(int wave) const { return ring_at(node_, wave, nodes_); }
  int source(int wave) const { return target(-wave); }

  std::int64_t count_of(const std::vector<int>& blocks) const {
    std::int64_t all = 0;
    for (const int block : blocks) all += outgoing(s_, block).count;
    return all;
  }
  Location temp() { return b_.temp(count_, Unit::recv); }
  bool has_lower() const { return node_ > 0; }
  bool has_higher() const { return node_ + 1 < nodes_; }

  // Returns where the sum that arrives from a node is added. There are two places, one for lower
  // and one for higher nodes; each begins as the first sum that arrives for it. The sums of lower
  // nodes arrive from the highest to the lowest, and then those of higher nodes.
  Location sum_at(int source) const { return source < node_ ? lower_ : sum_; }
  bool begins_sum(int source) const { return source + 1 == node_ || source + 1 == nodes_; }
  Location landing(int wave) const {
    const int from = source(wave);
    return begins_sum(from) ? sum_at(from) : inboxes_[static_cast<std::size_t>(wave % 2)];
  }

  void exchange(int wave) {
    Location at = landing(wave);
    for (const int block : blocks_) {
      b_.recv(parts_.adder(source(wave), block), at, outgoing(s_, block).count);
      at = at + outgoing(s_, block).count * b_.extent(Unit::recv);
    }
    for (const int block : parts_.added(target(wave)))
      b_.send(parts_.collector(block), parts_.sum_of(block), outgoing(s_, block).count);
  }

  void take_in(int wave) {
    const int from = source(wave);
    if (!begins_sum(from)) b_.reduce(landing(wave), sum_at(from), count_);
  }

  void finish() {
    if (blocks_.empty()) return;
    Location sum = parts_.sum_of(blocks_.front());
    if (has_higher()) {
      b_.reduce(sum, sum_, count_);
      sum = sum_;
    }
    if (has_lower()) b_.reduce(lower_, sum, sum_, count_);
    b_.copy(sum_, result_, outgoing(s_, s_.rank).count);
  }

  Builder& b_;
  const Shape& s_;
  const int node_, nodes_;
  NodeParts parts_;
  const std::vector<int> blocks_;
  const std::int64_t count_;  // elements of these blocks
  const bool gives_out_;      // this rank collects for others, or another one for it
  const Location result_, sum_;
  Location lower_;  // sum of the lower nodes
  std::array<Location, 2> inboxes_;
};

void build(Builder& b, bool one_leads) {
  const Shape& s = b.shape();
  std::int64_t least = INT64_MAX, most = 0;
  for (int rank = 0; rank < s.size; ++rank) {
    least = std::min(least, outgoing(s, rank).count);
    most = std::max(most, outgoing(s, rank).count);
  }
  if (most == 0) return;
  if (least > 0) b.synchronizes();
  ReduceScatter(b, one_leads).run();
}

}  // namespace

void reduce_scatter_hierarchical(Builder& b) {
  build(b, false);
}

void reduce_scatter_hierarchical_one_leader(Builder& b) {
  build(b, true);
}

}  // namespace weft
