// Hierarchical reduce: the ranks of a node reduce in its shared memory, and the leaders of the
// nodes reduce along a tree, chunk by chunk. While a chunk is in transit between nodes, the next
// one is reduced within the node. For vectors of n bytes, (k - 1) n bytes travel between k nodes,
// the minimum. The root leads its node; or the first rank of each node leads, and the root copies
// the sum from the node's memory, so that the leaders are the same for all roots. If the operator
// does not commute, the first rank of each node leads, and rank 0 gets the sum and sends it to the
// root as a whole.
// Hasanov, Lastovetsky, Hierarchical redesign of classic MPI reduction algorithms, J.
// Supercomputing 73, 2017
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_sums.h"
#include "coll/node_tree.h"

namespace weft {
namespace {

// The leaders of the nodes. last: the leader that gets the complete sum.
class Leaders {
 public:
  Leaders(const Shape& s, bool root_leads)
      : s_(s), last_(s.commutative ? (root_leads ? s.root : first(s.nodes->of(s.root))) : 0) {}

  int last() const { return last_; }
  int of(int node) const { return node == s_.nodes->of(last_) ? last_ : first(node); }
  int here() const { return of(node_of(s_)); }
  // Returns whether the root copies the sum out of the memory of this node.
  bool root_copies_out() const {
    return last_ != s_.root && s_.commutative && node_of(s_) == s_.nodes->of(s_.root);
  }

 private:
  int first(int node) const { return s_.nodes->ranks(node)[0]; }

  const Shape& s_;
  const int last_;
};

class Leader {
 public:
  Leader(Builder& b, NodeSums& sums, const Leaders& leaders)
      : b_(b),
        s_(b.shape()),
        sums_(sums),
        leaders_(leaders),
        tree_(tree_of_nodes(node_of(s_), s_.nodes->of(leaders.last()), s_.nodes->count(),
                            sums.chunks())) {
    for (std::size_t i = 0; i < 2 * tree_.children.size(); ++i)
      inboxes_.push_back(b.temp(sums.most(), Unit::recv));
    if (is_last() && !leaders.root_copies_out())
      result_ = s_.rank == s_.root ? Location{Buffer::recv, 0} : whole_in_temp();
  }

  void run() {
    sums_.reduce(0, own(0));
    for (std::int64_t chunk = 0; chunk < sums_.chunks(); ++chunk) {
      b_.end_round();
      for (std::size_t i = 0; i < tree_.children.size(); ++i)
        b_.recv(leaders_.of(tree_.children[i]), inbox(i, chunk), sums_.count(chunk));
      if (chunk > 0) pass_on(chunk - 1);
      if (chunk + 1 < sums_.chunks()) sums_.reduce(chunk + 1, own(chunk + 1));
      b_.end_round();
      if (chunk > 0 && !leaders_.root_copies_out()) sums_.publish();
      add_children(chunk);
      if (leaders_.root_copies_out()) sums_.publish();
    }
    b_.end_round();
    pass_on(sums_.chunks() - 1);
  }

  Location result() const { return result_; }

 private:
  bool is_last() const { return tree_.parent < 0; }
  Location whole_in_temp() { return b_.temp(s_.recv.count, Unit::recv); }
  Location own(std::int64_t chunk) const {
    return ranks_here(s_) == 1 ? b_.input() + sums_.offset(chunk) : sums_.shared(chunk);
  }
  Location inbox(std::size_t child, std::int64_t chunk) const {
    return inboxes_[2 * child + static_cast<std::size_t>(chunk % 2)];
  }

  void pass_on(std::int64_t chunk) {
    if (is_last()) return;
    const Location sum =
        tree_.children.empty() ? own(chunk) : inbox(tree_.children.size() - 1, chunk);
    b_.send(leaders_.of(tree_.parent), sum, sums_.count(chunk));
  }

  // Adds the sums of the child nodes to that of this node. The last leader puts the complete sum in
  // its place: in the result, or in the memory of the node.
  void add_children(std::int64_t chunk) {
    Location sum = own(chunk);
    const Location result = leaders_.root_copies_out() ? own(chunk) : result_ + sums_.offset(chunk);
    for (std::size_t i = 0; i < tree_.children.size(); ++i) {
      const bool finishes = is_last() && i + 1 == tree_.children.size();
      // The sum must not be written over the lower operand of the reduction.
      const bool directly = finishes && sum.buffer != result.buffer;
      const Location into = directly ? result : inbox(i, chunk);
      b_.reduce(sum, inbox(i, chunk), into, sums_.count(chunk));
      if (finishes && !directly) b_.copy(into, result, sums_.count(chunk));
      sum = into;
    }
  }

  Builder& b_;
  const Shape& s_;
  NodeSums& sums_;
  const Leaders& leaders_;
  const NodeTree tree_;
  std::vector<Location> inboxes_;  // received sums: two buffers for each child
  Location result_;
};

// Does the part of a rank that does not lead.
void follow(const Shape& s, NodeSums& sums, const Leaders& leaders) {
  const bool copies_out = leaders.root_copies_out() && s.rank == s.root;
  sums.reduce(0, {});
  for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
    if (chunk + 1 < sums.chunks()) sums.reduce(chunk + 1, {});
    if (copies_out && chunk > 0) sums.copy_out(chunk - 1);
    sums.publish();
  }
  if (copies_out) sums.copy_out(sums.chunks() - 1);
}

void give_to_root(Builder& b, int last, Location result) {
  const Shape& s = b.shape();
  b.end_round();
  if (s.rank == last) b.send(s.root, result, s.recv.count);
  if (s.rank == s.root) b.recv(last, {Buffer::recv, 0}, s.recv.count);
}

void build(Builder& b, bool root_leads) {
  const Shape& s = b.shape();
  if (s.recv.count == 0) return;
  const Leaders leaders(s, root_leads);
  const auto result_for =
      leaders.root_copies_out() ? NodeSums::Result::for_all : NodeSums::Result::for_the_leader;
  NodeSums sums(b, 1, result_for, node_rank_of(s, leaders.here()));
  Location result;
  if (s.rank == leaders.here()) {
    Leader leads(b, sums, leaders);
    leads.run();
    result = leads.result();
  } else {
    follow(s, sums, leaders);
  }
  if (leaders.last() != s.root && !s.commutative) give_to_root(b, leaders.last(), result);
}

}  // namespace

void reduce_hierarchical(Builder& b) {
  build(b, true);
}

void reduce_hierarchical_one_leader(Builder& b) {
  build(b, false);
}

}  // namespace weft
