// Hierarchical bcast: the root sends the data through the leaders of the nodes, chunk by chunk.
// Each leader copies a chunk to its node's shared memory while it forwards it and receives the next
// one. For data of n bytes, (k - 1) n bytes travel between k nodes, the minimum. The root leads its
// node; or the first rank of each node leads, and the root only shows the data to its node, so that
// the leaders are the same for all roots.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008 (fan-out)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/node_tree.h"
#include "coll/packed_block.h"

namespace weft {
namespace {

class Bcast {
 public:
  Bcast(Builder& b, bool root_leads)
      : b_(b),
        s_(b.shape()),
        root_leads_(root_leads),
        shower_(node_of(s_) == root_node() ? s_.root : leader_of(node_of(s_))),
        chunk_(b, s_.recv.bytes()),
        data_(b, outgoing(s_, 0), chunk_.is_cut()),
        tree_(tree_of_nodes(node_of(s_), root_node(), s_.nodes->count(), chunk_.chunks())) {}

  void run() {
    if (is_root())
      data_.pack();
    else if (leads())
      get(chunk_);
    for (; !chunk_.done(); chunk_.next()) {
      if (leads()) forward();
      if (shows())
        show();
      else if (!leads())
        get(chunk_);
    }
    if (!is_root()) data_.unpack();
  }

 private:
  int root_node() const { return s_.nodes->of(s_.root); }
  int leader_of(int node) const {
    return root_leads_ && node == root_node() ? s_.root : s_.nodes->ranks(node)[0];
  }
  bool is_root() const { return s_.rank == s_.root; }
  bool leads() const { return s_.rank == leader_of(node_of(s_)); }
  bool shows() const { return s_.rank == shower_; }

  // Gets a chunk by a message, or from the node's memory.
  void get(const NodeChunks& of) {
    NodeChunks chunk = of;
    if (shows()) return b_.recv(leader_of(tree_.parent), data_.piece(chunk.begin(), chunk.count()));
    chunk.signal_if_reused();
    chunk.wait(shower_);
    data_.copy_from(chunk.of(shower_), chunk.begin(), chunk.count());
  }

  // Sends a chunk to the next nodes while this rank gets the next one.
  void forward() {
    b_.end_round();
    NodeChunks next = chunk_;
    next.next();
    const bool gets = !is_root() && !next.done();
    if (gets && shows()) get(next);
    for (int child : tree_.children)
      b_.send(leader_of(child), data_.piece(chunk_.begin(), chunk_.count()));
    if (gets && !shows()) get(next);
  }

  void show() {
    if (ranks_here(s_) == 1) return;
    for (int rank : s_.nodes->ranks(node_of(s_))) chunk_.wait_until_read(rank);
    data_.copy_to(chunk_.of(s_.rank), chunk_.begin(), chunk_.count());
    chunk_.signal();
  }

  Builder& b_;
  const Shape& s_;
  const bool root_leads_;
  const int shower_;  // the rank that puts the data into the memory of this node
  NodeChunks chunk_;
  PackedBlock data_;
  const NodeTree tree_;
};

void build(Builder& b, bool root_leads) {
  if (b.shape().recv.bytes() > 0) Bcast(b, root_leads).run();
}

}  // namespace

void bcast_hierarchical(Builder& b) {
  build(b, true);
}

void bcast_hierarchical_one_leader(Builder& b) {
  build(b, false);
}

}  // namespace weft
