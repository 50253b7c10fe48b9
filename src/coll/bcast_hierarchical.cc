// Bcast by levels: the data goes from the root through the leaders of the nodes, part after part;
// each leader copies a part to its node's memory while it passes it on and receives the next one.
// (k - 1) n bytes go between k nodes, the least there is.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008 (fan-out)
#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/node_tree.h"
#include "coll/packed_block.h"

namespace weft {
namespace {

int leader_of(const Shape& s, int node) {
  return node == s.nodes->of(s.root) ? s.root : s.nodes->ranks(node)[0];
}

class Leader {
 public:
  Leader(Builder& b, NodeParts& part, PackedBlock& data)
      : b_(b),
        s_(b.shape()),
        part_(part),
        data_(data),
        tree_(tree_of_nodes(node_of(s_), s_.nodes->of(s_.root), s_.nodes->count(), part.parts())) {}

  void run() {
    if (is_root())
      data_.pack();
    else
      receive(part_);
    for (; !part_.done(); part_.next()) {
      b_.end_round();
      NodeParts next = part_;
      next.next();
      if (!is_root() && !next.done()) receive(next);
      for (int child : tree_.children)
        b_.send(leader_of(s_, child), data_.piece(part_.begin(), part_.count()));
      show();
    }
    if (!is_root()) data_.unpack();
  }

 private:
  bool is_root() const { return tree_.parent < 0; }

  void receive(const NodeParts& part) {
    b_.recv(leader_of(s_, tree_.parent), data_.piece(part.begin(), part.count()));
  }

  void show() {
    if (ranks_here(s_) == 1) return;
    for (int rank : s_.nodes->ranks(node_of(s_))) part_.wait_until_read(rank);
    data_.copy_to(part_.of(s_.rank), part_.begin(), part_.count());
    part_.signal();
  }

  Builder& b_;
  const Shape& s_;
  NodeParts& part_;
  PackedBlock& data_;
  const NodeTree tree_;
};

}  // namespace

void bcast_hierarchical(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (bytes == 0) return;
  NodeParts part(b, bytes);
  PackedBlock data(b, outgoing(s, 0), part.is_cut());
  const int leader = leader_of(s, node_of(s));
  if (s.rank == leader) return Leader(b, part, data).run();
  for (; !part.done(); part.next()) {
    part.signal_if_reused();
    part.wait(leader);
    data.copy_from(part.of(leader), part.begin(), part.count());
  }
  data.unpack();
}

}  // namespace weft
