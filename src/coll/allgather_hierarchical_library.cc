// Hierarchical allgather that uses the MPI library between nodes. Each rank calls the library's
// allgather with the ranks that have its node rank on other nodes, piece by piece. The pieces are
// received into the shared memory of the node, from which all of its ranks copy them. Kandalla et
// al., IPDPS 2009 workshops (multi-leader allgather)
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class Allgather {
 public:
  // Reserves the shared memory. At a time it holds one piece of each block that this rank receives.
  explicit Allgather(Builder& b)
      : b_(b),
        s_(b.shape()),
        nodes_(*s_.nodes),
        here_(nodes_.ranks(node_of(s_))),
        own_(b, outgoing(s_, 0), true),
        calling_(b, s_.recv.bytes(), nodes_.count()),
        showing_(calling_) {
    for (int rank = 0; rank < s_.size; ++rank) blocks_.emplace_back(b, incoming(s_, rank), true);
  }

  void run() {
    own_.pack();
    copy_own_block(b_);
    for (; !calling_.done(); calling_.next()) {
      b_.end_round();
      call();
      if (calling_.begin() > 0) copy_out();
      b_.end_round();
      calling_.signal();
    }
    copy_out();
    for (int rank = 0; rank < s_.size; ++rank)
      if (rank != s_.rank) block(rank).unpack();
  }

 private:
  PackedBlock& block(int rank) { return blocks_[static_cast<std::size_t>(rank)]; }

  void call() {
    for (int rank : here_) calling_.wait_until_read(rank);
    const Operand piece = own_.piece(calling_.begin(), calling_.count());
    const Operand of_all{calling_.of(s_.rank), nodes_.count() * calling_.count(), Unit::byte};
    b_.leaders(Kind::allgather, 0, piece, of_all);
  }

  // Copies pieces from shared memory to the receive buffer: first those that this rank received,
  // then those of the following node ranks.
  void copy_out() {
    const auto ranks = static_cast<int>(here_.size());
    for (int i = 0; i < ranks; ++i) {
      const int node_rank = ring_at(node_rank_of(s_, s_.rank), i, ranks);
      const int leader = rank_here(s_, node_rank);
      showing_.wait(leader);
      for (int node = 0; node < nodes_.count(); ++node) {
        const int rank = nodes_.ranks(node)[static_cast<std::size_t>(node_rank)];
        if (rank != s_.rank)
          block(rank).copy_from(showing_.of(leader) + node * showing_.count(), showing_.begin(),
                                showing_.count());
      }
    }
    showing_.next();
  }

  Builder& b_;
  const Shape& s_;
  const Nodes& nodes_;
  const Nodes::Ranks here_;
  PackedBlock own_;
  std::vector<PackedBlock> blocks_;  // block of each rank in the receive buffer
  // Shared memory, in chunks: to call the library with, and to show the pieces to the node.
  NodeChunks calling_, showing_;
};

}  // namespace

void allgather_hierarchical_library(Builder& b) {
  if (b.shape().recv.bytes() == 0) return;
  b.synchronizes();
  Allgather(b).run();
}

}  // namespace weft
