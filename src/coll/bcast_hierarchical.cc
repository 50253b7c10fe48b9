// Hierarchical bcast: the root sends the data through the leaders of the nodes, chunk by chunk.
// Each leader copies a chunk to its node's shared memory while it forwards it and receives the next
// one. For data of n bytes, (k - 1) n bytes travel between k nodes, the minimum.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008 (fan-out)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/node_tree.h"
#include "coll/packed_block.h"

namespace weft {
namespace {

int leader_of(const Shape& s, int node) {
  return node == s.nodes->of(s.root) ? s.root : s.nodes->ranks(node)[0];
}

class Leader {
 public:
  Leader(Builder& b, NodeChunks& chunk, PackedBlock& data)
      : b_(b),
        s_(b.shape()),
        chunk_(chunk),
        data_(data),
        tree_(
            tree_of_nodes(node_of(s_), s_.nodes->of(s_.root), s_.nodes->count(), chunk.chunks())) {}

  void run() {
    if (is_root())
      data_.pack();
    else
      receive(chunk_);
    for (; !chunk_.done(); chunk_.next()) {
      b_.end_round();
      NodeChunks next = chunk_;
      next.next();
      if (!is_root() && !next.done()) receive(next);
      for (int child : tree_.children)
        b_.send(leader_of(s_, child), data_.piece(chunk_.begin(), chunk_.count()));
      show();
    }
    if (!is_root()) data_.unpack();
  }

 private:
  bool is_root() const { return tree_.parent < 0; }

  void receive(const NodeChunks& chunk) {
    b_.recv(leader_of(s_, tree_.parent), data_.piece(chunk.begin(), chunk.count()));
  }

  void show() {
    if (ranks_here(s_) == 1) return;
    for (int rank : s_.nodes->ranks(node_of(s_))) chunk_.wait_until_read(rank);
    data_.copy_to(chunk_.of(s_.rank), chunk_.begin(), chunk_.count());
    chunk_.signal();
  }

  Builder& b_;
  const Shape& s_;
  NodeChunks& chunk_;
  PackedBlock& data_;
  const NodeTree tree_;
};

}  // namespace

void bcast_hierarchical(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (bytes == 0) return;
  NodeChunks chunk(b, bytes);
  PackedBlock data(b, outgoing(s, 0), chunk.is_cut());
  const int leader = leader_of(s, node_of(s));
  if (s.rank == leader) return Leader(b, chunk, data).run();
  for (; !chunk.done(); chunk.next()) {
    chunk.signal_if_reused();
    chunk.wait(leader);
    data.copy_from(chunk.of(leader), chunk.begin(), chunk.count());
  }
  data.unpack();
}

}  // namespace weft
