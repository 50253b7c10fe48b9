// Hierarchical reduce: the ranks of a node reduce in its shared memory, and the leaders of the
// nodes reduce along a tree, chunk by chunk. While a chunk is in transit between nodes, the next
// one is reduced within the node. For vectors of n bytes, (k - 1) n bytes travel between k nodes,
// the minimum. The root is the leader of its node. If the operator does not commute, the first rank
// of each node is its leader, and rank 0 gets the sum and sends it to the root as a whole.
// Hasanov, Lastovetsky, Hierarchical redesign of classic MPI reduction algorithms, J.
// Supercomputing 73, 2017
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_sums.h"
#include "coll/node_tree.h"

namespace weft {
namespace {

// Returns the rank that gets the complete sum.
int last_of(const Shape& s) {
  return s.commutative ? s.root : 0;
}

int leader_of(const Shape& s, int node) {
  const int last = last_of(s);
  return node == s.nodes->of(last) ? last : s.nodes->ranks(node)[0];
}

class Leader {
 public:
  Leader(Builder& b, NodeSums& sums)
      : b_(b),
        s_(b.shape()),
        sums_(sums),
        tree_(tree_of_nodes(node_of(s_), s_.nodes->of(last_of(s_)), s_.nodes->count(),
                            sums.chunks())) {
    for (std::size_t i = 0; i < 2 * tree_.children.size(); ++i)
      inboxes_.push_back(b.temp(sums.most(), Unit::recv));
    if (is_last()) result_ = s_.rank == s_.root ? Location{Buffer::recv, 0} : whole_in_temp();
  }

  void run() {
    sums_.reduce(0, own(0));
    for (std::int64_t chunk = 0; chunk < sums_.chunks(); ++chunk) {
      b_.end_round();
      for (std::size_t i = 0; i < tree_.children.size(); ++i)
        b_.recv(leader_of(s_, tree_.children[i]), inbox(i, chunk), sums_.count(chunk));
      if (chunk > 0) pass_on(chunk - 1);
      if (chunk + 1 < sums_.chunks()) sums_.reduce(chunk + 1, own(chunk + 1));
      b_.end_round();
      if (chunk > 0) sums_.publish();
      add_children(chunk);
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
    b_.send(leader_of(s_, tree_.parent), sum, sums_.count(chunk));
  }

  void add_children(std::int64_t chunk) {
    Location sum = own(chunk);
    for (std::size_t i = 0; i < tree_.children.size(); ++i) {
      const bool finishes = is_last() && i + 1 == tree_.children.size();
      // The sum must not be written over the lower operand of the reduction.
      const bool directly = finishes && sum.buffer != result_.buffer;
      const Location into = directly ? result_ + sums_.offset(chunk) : inbox(i, chunk);
      b_.reduce(sum, inbox(i, chunk), into, sums_.count(chunk));
      if (finishes && !directly) b_.copy(into, result_ + sums_.offset(chunk), sums_.count(chunk));
      sum = into;
    }
  }

  Builder& b_;
  const Shape& s_;
  NodeSums& sums_;
  const NodeTree tree_;
  std::vector<Location> inboxes_;  // two buffers for received sums per child
  Location result_;
};

void give_to_root(Builder& b, Location result) {
  const Shape& s = b.shape();
  b.end_round();
  if (s.rank == last_of(s)) b.send(s.root, result, s.recv.count);
  if (s.rank == s.root) b.recv(last_of(s), {Buffer::recv, 0}, s.recv.count);
}

}  // namespace

void reduce_hierarchical(Builder& b) {
  const Shape& s = b.shape();
  if (s.recv.count == 0) return;
  const int leader = leader_of(s, node_of(s));
  NodeSums sums(b, 1, NodeSums::Result::for_the_leader, node_rank_of(s, leader));
  Location result;
  if (s.rank == leader) {
    Leader leads(b, sums);
    leads.run();
    result = leads.result();
  } else {
    for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) sums.reduce(chunk, {});
  }
  if (last_of(s) != s.root) give_to_root(b, result);
}

}  // namespace weft
