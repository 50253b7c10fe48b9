// Bcast by levels, between the nodes by the MPI library: the ranks with the root's node rank lead,
// and while the library's bcast of a part is under way, they copy the one before to their node's
// memory; on the root's node, the part itself. Graham et al., Cheetah, CCGrid 2011 (a primitive for
// each level)
#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/packed_block.h"

namespace weft {
namespace {

class Leader {
 public:
  Leader(Builder& b, const NodeParts& part, PackedBlock& data)
      : b_(b), s_(b.shape()), calling_(part), showing_(part), data_(data) {}

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
  NodeParts calling_, showing_;
  PackedBlock& data_;
};

}  // namespace

void bcast_hierarchical_library(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (bytes == 0) return;
  NodeParts part(b, bytes);
  PackedBlock data(b, outgoing(s, 0), true);
  const int leader = rank_here(s, s.nodes->local_rank(s.root));
  if (s.rank == leader) return Leader(b, part, data).run();
  for (; !part.done(); part.next()) {
    part.signal_if_reused();
    part.wait(leader);
    data.copy_from(part.of(leader), part.begin(), part.count());
  }
  data.unpack();
}

}  // namespace weft
