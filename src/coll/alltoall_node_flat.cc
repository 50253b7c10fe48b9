// Alltoall in the node's shared memory: every rank copies its blocks in, chunk by chunk, and each
// other rank copies its block out. A chunk holds as many blocks as fit, or a piece of one. In step
// i, ranks whose numbers add up to i modulo p exchange their blocks. Both blocks thus lie at the
// same place in a chunk, and in place each overwrites the one just copied. With p ranks and blocks
// of n bytes, each rank copies (2 p - 1) n bytes.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "coll/packer.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// The blocks that a rank sends to or receives from the others, in the order of the steps, divided
// into pieces. All pieces have equal length except the last one of each block.
class Pieces {
 public:
  explicit Pieces(const Builder& b)
      : s_(b.shape()),
        bytes_(s_.recv.bytes()),
        length_(std::min(bytes_, b.tuning().chunk_bytes)),
        per_block_((bytes_ + length_ - 1) / length_) {}

  std::int64_t count() const { return s_.size * per_block_; }
  std::int64_t length() const { return length_; }
  bool are_cut() const { return per_block_ > 1; }

  int peer(std::int64_t piece) const {
    return ring_at(static_cast<int>(piece / per_block_), -s_.rank, s_.size);
  }
  Operand of(const PackedBlock& block, std::int64_t piece) const {
    const std::int64_t begin = piece % per_block_ * length_;
    return block.piece(begin, std::min(length_, bytes_ - begin));
  }

 private:
  const Shape& s_;
  const std::int64_t bytes_;
  const std::int64_t length_;
  const std::int64_t per_block_;
};

class Exchange {
 public:
  Exchange(Builder& b, const Pieces& pieces) : b_(b), s_(b.shape()), pieces_(pieces) {
    for (int rank = 0; rank < s_.size; ++rank) {
      const bool is_cut = pieces.are_cut() && rank != s_.rank;
      given_.emplace_back(b, outgoing(s_, rank), is_cut);
      taken_.emplace_back(b, incoming(s_, rank), is_cut);
    }
    for (PackedBlock& block : given_) block.pack();
  }

  void copy_in(const NodeChunks& chunk) {
    Packer packer(b_, Packer::Way::pack, chunk.of(s_.rank));
    for (std::int64_t i = chunk.begin(); i < chunk.begin() + chunk.count(); ++i) {
      chunk.wait_until_read(pieces_.peer(i - chunk.distance_of_reuse()));
      const int peer = pieces_.peer(i);
      const Operand piece = pieces_.of(given_[static_cast<std::size_t>(peer)], i);
      if (peer == s_.rank)
        packer.skip(piece);
      else
        packer.add(piece);
    }
    packer.finish();
  }

  void copy_out(const NodeChunks& chunk) {
    for (std::int64_t i = chunk.begin(); i < chunk.begin() + chunk.count(); ++i) {
      const int peer = pieces_.peer(i);
      if (peer == s_.rank) continue;
      const Operand piece = pieces_.of(taken_[static_cast<std::size_t>(peer)], i);
      const Location at = chunk.of(peer) + (i - chunk.begin()) * pieces_.length();
      chunk.wait(peer);
      b_.copy({at, payload_bytes(b_, piece), Unit::byte}, piece);
    }
  }

  void finish() {
    for (PackedBlock& block : taken_) block.unpack();
    copy_own_block(b_);
  }

 private:
  Builder& b_;
  const Shape& s_;
  const Pieces& pieces_;
  std::vector<PackedBlock> given_, taken_;  // blocks to and from each rank, indexed by rank
};

}  // namespace

void alltoall_node_flat(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return copy_own_block(b);
  if (s.recv.bytes() == 0) return;
  b.synchronizes();
  const Pieces pieces(b);
  Exchange exchange(b, pieces);
  NodeChunks chunk = NodeChunks::exchanged(b, pieces.count(), pieces.length());
  for (; !chunk.done(); chunk.next()) {
    exchange.copy_in(chunk);
    chunk.signal();
    exchange.copy_out(chunk);
  }
  exchange.finish();
}

}  // namespace weft
