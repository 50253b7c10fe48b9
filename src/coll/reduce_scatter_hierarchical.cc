// Hierarchical reduce-scatter: the ranks of a node reduce their parts of a block in the node's
// shared memory. One of them sends the sum to the block's owner, which adds the sums of all nodes
// in order. The ranks of a node share the blocks by node rank, so that all of them send. Nodes take
// turns as targets: while the sums for one are in transit, those for the next are computed, and
// received ones are added. With blocks of n bytes, a node with m of p ranks sends (p - m) n bytes,
// the minimum, in as many messages.
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

// The division of a node's blocks: most elements per piece, and number of pieces.
struct Cut {
  std::int64_t most;
  std::int64_t pieces;
};

// Returns the division of the blocks of each node. A chunk has space for one piece of each block of
// the node. Each piece takes as many steps as there are local ranks, so pieces are as long as
// memory permits.
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

// Computes this node's sums for the blocks of one target node at a time.
class NodeParts {
 public:
  explicit NodeParts(Builder& b)
      : b_(b),
        s_(b.shape()),
        nodes_(*s_.nodes),
        extent_(b.extent(Unit::recv)),
        cuts_(cuts_by_node(b)),
        chunk_(b, chunks(), row_bytes(), 1, 1) {
    if (is_alone()) return;
    for (Location& sums : sums_) sums = b.temp(most_elements(), Unit::recv);
  }

  // Returns the rank of `node` that computes its sum of a block.
  int adder(int node, int block) const {
    const int node_rank = nodes_.local_rank(block) % nodes_.ranks_on(node);
    return nodes_.ranks(node)[static_cast<std::size_t>(node_rank)];
  }
  // Returns the blocks of a node whose sums this rank computes.
  std::vector<int> added(int node) const {
    std::vector<int> blocks;
    const int ranks = nodes_.ranks_on(node);
    for (int number = node_rank_of(s_, s_.rank); number < ranks; number += ranks_here(s_))
      blocks.push_back(nodes_.ranks(node)[static_cast<std::size_t>(number)]);
    return blocks;
  }
  // Returns the place of the block's sum, valid until the sums for the next node but one are
  // computed. A rank alone on its node uses its input.
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

  // Computes this node's sums for the blocks of a target node. Must be called for the next node
  // first, then for each further one around the circle of nodes.
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

 private:
  bool is_alone() const { return ranks_here(s_) == 1; }
  const Cut& cut(int node) const { return cuts_[static_cast<std::size_t>(node)]; }

  std::int64_t chunks() const {
    std::int64_t all = 0;
    for (const Cut& cut : cuts_) all += cut.pieces;
    return all;
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

  // Copies this rank's pieces into shared memory. Returns the offset of each block's piece there,
  // by node rank.
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

  // Adds this node's operands of a block's piece. begin: the offset of the piece in each rank's
  // shared memory.
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
  const Nodes& nodes_;
  const std::int64_t extent_;
  const std::vector<Cut> cuts_;  // indexed by node
  NodeChunks chunk_;
  std::array<Location, 2> sums_;  // used by two target nodes in turn
  // The ranks that read the last chunk but one (first entry), and the last chunk (second entry).
  std::array<std::vector<int>, 2> readers_;
};

// Exchanges the sums between nodes, and adds those of this rank's block.
class ReduceScatter {
 public:
  explicit ReduceScatter(Builder& b)
      : b_(b),
        s_(b.shape()),
        node_(node_of(s_)),
        nodes_(s_.nodes->count()),
        count_(outgoing(s_, s_.rank).count),
        result_(incoming(s_, s_.rank).at),
        // If the call is in place, the result would overwrite input that is still to be read or
        // sent.
        sum_(s_.in_place ? temp() : result_),
        parts_(b) {
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
  }

 private:
  // Returns the node to which this one sends in a wave; in the last wave that is this node itself.
  int target(int wave) const { return ring_at(node_, wave, nodes_); }
  int source(int wave) const { return target(-wave); }

  Location temp() { return b_.temp(count_, Unit::recv); }
  bool has_lower() const { return node_ > 0; }
  bool has_higher() const { return node_ + 1 < nodes_; }

  // Returns where a node's sum is added up. Sums of lower nodes arrive first, from the highest to
  // the lowest, and then those of higher nodes. Each of the two places begins with the first
  // arrival.
  Location sum_at(int source) const { return source < node_ ? lower_ : sum_; }
  bool begins_sum(int source) const { return source + 1 == node_ || source + 1 == nodes_; }
  Location landing(int wave) const {
    const int from = source(wave);
    return begins_sum(from) ? sum_at(from) : inboxes_[static_cast<std::size_t>(wave % 2)];
  }

  void exchange(int wave) {
    b_.recv(parts_.adder(source(wave), s_.rank), landing(wave), count_);
    for (const int block : parts_.added(target(wave)))
      b_.send(block, parts_.sum_of(block), outgoing(s_, block).count);
  }

  void take_in(int wave) {
    const int from = source(wave);
    if (!begins_sum(from)) b_.reduce(landing(wave), sum_at(from), count_);
  }

  void finish() {
    Location sum = parts_.sum_of(s_.rank);
    if (has_higher()) {
      b_.reduce(sum, sum_, count_);
      sum = sum_;
    }
    if (has_lower()) b_.reduce(lower_, sum, sum_, count_);
    b_.copy(sum_, result_, count_);
  }

  Builder& b_;
  const Shape& s_;
  const int node_, nodes_;
  const std::int64_t count_;
  const Location result_, sum_;
  NodeParts parts_;
  Location lower_;  // sum of the lower nodes
  std::array<Location, 2> inboxes_;
};

}  // namespace

void reduce_scatter_hierarchical(Builder& b) {
  const Shape& s = b.shape();
  std::int64_t least = INT64_MAX, most = 0;
  for (int rank = 0; rank < s.size; ++rank) {
    least = std::min(least, outgoing(s, rank).count);
    most = std::max(most, outgoing(s, rank).count);
  }
  if (most == 0) return;
  if (least > 0) b.synchronizes();
  ReduceScatter(b).run();
}

}  // namespace weft
