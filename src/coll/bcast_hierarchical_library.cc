// Hierarchical bcast that calls the MPI library's bcast between nodes, chunk by chunk. The leaders
// are the ranks with the root's node rank. While the library's bcast of a chunk is in progress,
// they copy the previous chunk to their node's shared memory; on the root's node, the root copies
// the chunk itself. Graham et al., Cheetah, CCGrid 2011 (a primitive for each level)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/packed_block.h"

namespace weft {
namespace {

class Leader {
 public:
  Leader(Builder& b, const NodeChunks& chunk, PackedBlock& data)
      : b_(b), s_(b.shape()), calling_(chunk), showing_(chunk), data_(data) {}

  void run() {
    if (is_root()) data_.pack();
    if (!is_root()) call();
    for (; !showing_.done(); showing_.next()) {
      b_.end_round();
      if (!calling_.done()) call();
      show();
    }
    if (!is_root()) data_.unpack();
  }

 private:
  bool is_root() const { return s_.rank == s_.root; }

  void call() {
    const Operand piece = data_.piece(calling_.begin(), calling_.count());
    const Operand nothing;
    b_.leaders(Kind::bcast, s_.root, is_root() ? piece : nothing, is_root() ? nothing : piece);
    calling_.next();
  }

  void show() {
    for (int rank : s_.nodes->ranks(node_of(s_))) showing_.wait_until_read(rank);
    data_.copy_to(showing_.of(s_.rank), showing_.begin(), showing_.count());
    showing_.signal();
  }

  Builder& b_;
  const Shape& s_;
  NodeChunks calling_, showing_;
  PackedBlock& data_;
};

}  // namespace

void bcast_hierarchical_library(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (bytes == 0) return;
  NodeChunks chunk(b, bytes);
  PackedBlock data(b, outgoing(s, 0), true);
  const int leader = rank_here(s, s.nodes->local_rank(s.root));
  if (s.rank == leader) return Leader(b, chunk, data).run();
  for (; !chunk.done(); chunk.next()) {
    chunk.signal_if_reused();
    chunk.wait(leader);
    data.copy_from(chunk.of(leader), chunk.begin(), chunk.count());
  }
  data.unpack();
}

}  // namespace weft
