// Gatherv, scatterv, alltoallv and alltoallw in the node's shared memory. A rank copies its block
// for another rank, piece after piece, into memory that this pair of ranks uses; the other rank
// copies it out. Only these two know the block's length. The sender tells it and the receiver
// checks it: if the lengths differ, the call fails on the receiver and on the ranks that wait for
// it. Each byte is copied twice, those of the rank's own block once. Graham, Shipman, MPI support
// for multi-core architectures, EuroPVM/MPI 2008
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/mailboxes.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "coll/packer.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class Exchange {
 public:
  explicit Exchange(Builder& b) : b_(b), s_(b.shape()), boxes_(b) {
    const bool all_give = s_.kind == Kind::alltoallv || s_.kind == Kind::alltoallw;
    const bool is_root = s_.rank == s_.root;
    const bool gives_all = all_give || (s_.kind == Kind::scatterv && is_root);
    const bool takes_all = all_give || (s_.kind == Kind::gatherv && is_root);
    for (int i = 1; i < s_.size; ++i) {
      const int to = ring_at(s_.rank, i, s_.size), from = ring_at(s_.rank, -i, s_.size);
      if (gives_all || (s_.kind == Kind::gatherv && to == s_.root && !is_root))
        add(given_, to, outgoing(s_, to));
      if (takes_all || (s_.kind == Kind::scatterv && from == s_.root && !is_root))
        add(taken_, from, incoming(s_, from));
    }
    if (all_give) b.synchronizes();
  }

  void run() {
    for (Part& part : given_) {
      part.block.pack();
      boxes_.tell(part.peer, part.bytes);
    }
    give(0);
    copy_own();
    for (Part& part : taken_) {
      boxes_.wait(part.peer, 0);
      boxes_.check(part.peer, part.bytes);
      take(part, 0);
    }
    for (std::int64_t piece = 1; piece < rounds_; ++piece) {
      give(piece);
      for (Part& part : taken_) take(part, piece);
    }
    for (Part& part : taken_) part.block.unpack();
  }

 private:
  // A block that this rank sends to `peer` or receives from it.
  struct Part {
    int peer;
    std::int64_t bytes;
    PackedBlock block;
  };

  void add(std::vector<Part>& parts, int peer, const Operand& block) {
    const std::int64_t bytes = payload_bytes(b_, block);
    parts.push_back({peer, bytes, PackedBlock(b_, block, boxes_.is_cut(bytes))});
    rounds_ = std::max(rounds_, boxes_.pieces(bytes));
  }

  void give(std::int64_t piece) {
    for (Part& part : given_) {
      if (piece >= boxes_.pieces(part.bytes)) continue;
      boxes_.wait_until_read(part.peer, piece);
      part.block.copy_to(boxes_.of(s_.rank, part.peer, piece), boxes_.begin(piece),
                         boxes_.length(part.bytes, piece));
    }
    if (signals()) b_.signal();
  }

  // Returns whether this rank must signal: if it sends a block, or if others will overwrite a piece
  // that it must have read before.
  bool signals() const { return !given_.empty() || rounds_ > Mailboxes::kDepth; }

  void take(Part& part, std::int64_t piece) {
    if (piece >= boxes_.pieces(part.bytes)) return;
    boxes_.wait(part.peer, piece);
    part.block.copy_from(boxes_.of(part.peer, s_.rank, piece), boxes_.begin(piece),
                         boxes_.length(part.bytes, piece));
  }

  // Copies the rank's own block while the other ranks write their first pieces.
  void copy_own() {
    const bool has_own = s_.kind == Kind::alltoallv || s_.kind == Kind::alltoallw;
    if (has_own || s_.rank == s_.root) copy_own_block(b_);
  }

  Builder& b_;
  const Shape& s_;
  Mailboxes boxes_;
  // Blocks to send and to receive, beginning with the neighbouring rank.
  std::vector<Part> given_, taken_;
  std::int64_t rounds_ = 1;
};

}  // namespace

void irregular_node_flat(Builder& b) {
  if (b.shape().size == 1) return copy_own_block(b);
  Exchange(b).run();
}

}  // namespace weft
