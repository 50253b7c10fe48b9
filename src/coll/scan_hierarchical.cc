// Hierarchical scan and exscan with one leader per node, for nodes of consecutive ranks, chunk by
// chunk: the ranks of a node form the scan of their own data along a chain in its shared memory,
// and the leaders, the first ranks, pass the sum of all nodes before theirs along the chain of
// nodes. Each rank adds that sum to its part. While a chunk is in transit between nodes, the next
// one passes through the ranks of the node. With vectors of n bytes, n bytes go from each node to
// the next, the minimum, and only leaders send. The algorithm keeps the order of operands.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC, the chain); JHPCN jh250041 (thread compaction)
#include <algorithm>
#include <array>

#include "coll/build_functions.h"
#include "schedule/builder.h"

namespace weft {
namespace {

// The bytes of a chunk. All sums of a node fit into its memory kDepth times.
constexpr std::int64_t kChunk_bytes = 96 * 1024;

class Scan {
 public:
  Scan(Builder& b, bool exclusive)
      : b_(b),
        s_(b.shape()),
        exclusive_(exclusive),
        node_(node_of(s_)),
        node_rank_(node_rank_of(s_, s_.rank)),
        ranks_(ranks_here(s_)),
        most_(std::clamp<std::int64_t>(kChunk_bytes / b.extent(Unit::recv), 1, s_.recv.count)),
        chunks_((s_.recv.count + most_ - 1) / most_) {
    const std::int64_t sums = kDepth * (ranks_ + 1) * most_;
    if (is_alone())
      memory_ = b.temp(sums, Unit::recv);
    else
      memory_ = b.node(sums * b.extent(Unit::recv));
    if (leads() && has_node_before() && has_node_behind())
      for (Location& total : totals_) total = b.temp(most_, Unit::recv);
  }

  void run() {
    add(0);
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
      if (leads()) pass_on(chunk);
      if (chunk + 1 < chunks_) add(chunk + 1);
      if (leads()) {
        b_.end_round();
        signal();
        form_total(chunk);
      }
      take_result(chunk);
      if (!leads()) signal();
    }
    if (!leads() || !has_node_behind()) return;
    b_.end_round();
    b_.send(leader_of(node_ + 1), total(chunks_ - 1), count(chunks_ - 1));
  }

 private:
  // The number of chunks in shared memory at a time: one that is added to, one in transit, and one
  // whose results the slowest rank still takes.
  static constexpr std::int64_t kDepth = 3;

  bool is_alone() const { return ranks_ == 1; }
  bool leads() const { return node_rank_ == 0; }
  bool is_highest() const { return node_rank_ == ranks_ - 1; }
  bool has_node_before() const { return node_ > 0; }
  bool has_node_behind() const { return node_ + 1 < s_.nodes->count(); }
  int leader_of(int node) const { return s_.nodes->rank(node, 0); }
  void signal() {
    if (!is_alone()) b_.signal();
  }

  std::int64_t count(std::int64_t chunk) const {
    return std::min(most_, s_.recv.count - chunk * most_);
  }
  std::int64_t offset(std::int64_t chunk) const { return chunk * most_ * b_.extent(Unit::recv); }
  Location input(std::int64_t chunk) const { return b_.input() + offset(chunk); }
  Location result(std::int64_t chunk) const { return {Buffer::recv, offset(chunk)}; }

  // Returns where sum number `index` of a chunk lies.
  Location sum(std::int64_t index, std::int64_t chunk) const {
    return memory_ + (chunk % kDepth * (ranks_ + 1) + index) * most_ * b_.extent(Unit::recv);
  }
  // Returns where the sum of this node's ranks up to node rank `last` lies.
  Location up_to(int last, std::int64_t chunk) const {
    return is_alone() ? input(chunk) : sum(last, chunk);
  }
  // Returns where the sum of all nodes before this one lies.
  Location before(std::int64_t chunk) const { return sum(ranks_, chunk); }
  // Returns where the leader has the sum of all nodes up to this one.
  Location total(std::int64_t chunk) const {
    if (!has_node_before()) return up_to(ranks_ - 1, chunk);
    return totals_[static_cast<std::size_t>(chunk % 2)];
  }

  // added() returns the value of a rank's counter once it has added its data to a chunk. ended()
  // returns the value once a rank is done with a chunk; for the leader, once its messages of the
  // round of this chunk have completed, so that it has received the sum of all nodes before and has
  // sent the total of the chunk before.
  static std::uint32_t added(std::int64_t chunk) {
    return static_cast<std::uint32_t>(std::max<std::int64_t>(2 * chunk, 1));
  }
  std::uint32_t ended(std::int64_t chunk) const {
    return static_cast<std::uint32_t>(std::min(2 * chunk + 3, 2 * chunks_));
  }
  void wait(int node_rank, std::uint32_t value) {
    if (node_rank != node_rank_) b_.wait(rank_here(s_, node_rank), value);
  }

  // Adds this rank's data of a chunk to the sum of the ranks below. The sum overwrites that of an
  // earlier chunk, to which the rank above must have added and which, in an exscan, it must have
  // read for its result. If the leader forms totals, it has waited for later sums of all ranks.
  void add(std::int64_t chunk) {
    if (is_alone()) return;
    if (!leads()) wait(node_rank_ - 1, added(chunk));
    if (chunk >= kDepth && !is_highest() && (exclusive_ || !has_node_behind()))
      wait(node_rank_ + 1, exclusive_ ? ended(chunk - kDepth) : added(chunk - kDepth));
    if (leads())
      b_.copy(input(chunk), sum(0, chunk), count(chunk));
    else
      b_.reduce(sum(node_rank_ - 1, chunk), input(chunk), sum(node_rank_, chunk), count(chunk));
    signal();
  }

  // Begins the leader's messages: the sum of all nodes before arrives, and the previous chunk's
  // total leaves. The sum overwrites that of an earlier chunk, whose results all ranks of the node
  // must have taken. If the leader forms totals, it has waited for signals that follow these.
  void pass_on(std::int64_t chunk) {
    if (!has_node_behind() && chunk >= kDepth)
      for (int node_rank = 1; node_rank < ranks_; ++node_rank)
        wait(node_rank, ended(chunk - kDepth));
    b_.end_round();
    if (has_node_before()) b_.recv(leader_of(node_ - 1), before(chunk), count(chunk));
    if (has_node_behind() && chunk > 0)
      b_.send(leader_of(node_ + 1), total(chunk - 1), count(chunk - 1));
  }

  // Adds the sum of the leader's node to that of all nodes before.
  void form_total(std::int64_t chunk) {
    if (!has_node_behind()) return;
    wait(ranks_ - 1, added(chunk));
    if (has_node_before())
      b_.reduce(before(chunk), up_to(ranks_ - 1, chunk), total(chunk), count(chunk));
  }

  void take_result(std::int64_t chunk) {
    if (has_node_before()) wait(0, ended(chunk));
    if (exclusive_)
      take_exclusive(chunk);
    else if (has_node_before())
      b_.reduce(before(chunk), own(chunk), result(chunk), count(chunk));
    else
      b_.copy(own(chunk), result(chunk), count(chunk));
  }
  void take_exclusive(std::int64_t chunk) {
    if (leads() && has_node_before()) b_.copy(before(chunk), result(chunk), count(chunk));
    if (leads()) return;
    const Location below = up_to(node_rank_ - 1, chunk);
    if (has_node_before())
      b_.reduce(before(chunk), below, result(chunk), count(chunk));
    else
      b_.copy(below, result(chunk), count(chunk));
  }
  // Returns where the sum of this node's ranks up to this one lies.
  Location own(std::int64_t chunk) const { return leads() ? input(chunk) : sum(node_rank_, chunk); }

  Builder& b_;
  const Shape& s_;
  const bool exclusive_;
  const int node_, node_rank_;
  const int ranks_;  // number of ranks on this node
  const std::int64_t most_, chunks_;
  // For kDepth chunks in turn: the sums up to each rank of the node, and that of all nodes before.
  Location memory_;
  std::array<Location, 2> totals_;  // on the leader of a node between others
};

void build(Builder& b, bool exclusive) {
  if (b.shape().recv.count > 0) Scan(b, exclusive).run();
}

}  // namespace

void scan_hierarchical_one_leader(Builder& b) {
  build(b, false);
}

void exscan_hierarchical_one_leader(Builder& b) {
  build(b, true);
}

}  // namespace weft
