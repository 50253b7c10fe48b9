// Bcast of long data: a scatter of blocks down a binomial tree, then a ring allgather. A block is
// not sent to a rank that got it in the scatter, so every rank receives every byte once. van de
// Geijn, Barnett et al., JPDC 22(2), 1994
#include <ranges>

#include "coll/build_functions.h"
#include "coll/packed_bcast.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"
#include "patterns/tree.h"

namespace weft {
namespace {

// Builds the schedule. The nodes of the tree are ranks relative to the root, and node v keeps block
// v of the scatter.
class ScatterAllgather {
 public:
  ScatterAllgather(Builder& builder, const PackedBcast& data)
      : b_(builder),
        data_(data),
        size_(builder.shape().size),
        node_(ring_at(builder.shape().rank, -builder.shape().root, size_)),
        blocks_{builder.shape().recv.bytes(), size_} {}

  void scatter() {
    if (node_ != 0) {
      b_.recv(rank_of(binomial_parent(node_)), data_.at(blocks_.begin(node_)), subtree_bytes(node_),
              Unit::byte);
      b_.end_round();
    }
    for (int child : std::views::reverse(binomial_children(node_, size_))) {
      b_.send(rank_of(child), data_.at(blocks_.begin(child)), subtree_bytes(child), Unit::byte);
      b_.end_round();
    }
  }

  void allgather() {
    const int next = ring_at(node_, 1, size_);
    const int previous = ring_at(node_, -1, size_);
    for (const int step : b_.iterations(0, size_ - 1)) {
      const int given = ring_at(node_, -step, size_);
      const int taken = ring_at(given, -1, size_);
      if (!has_after_scatter(node_, taken))
        b_.recv(rank_of(previous), data_.at(blocks_.begin(taken)), blocks_.length(taken),
                Unit::byte);
      if (!has_after_scatter(next, given))
        b_.send(rank_of(next), data_.at(blocks_.begin(given)), blocks_.length(given), Unit::byte);
      b_.end_round();
    }
  }

 private:
  int rank_of(int node) const { return ring_at(b_.shape().root, node, size_); }

  std::int64_t subtree_bytes(int node) const {
    return blocks_.length(node, node + binomial_subtree(node, size_));
  }

  bool has_after_scatter(int node, int block) const {
    return block >= node && block < node + binomial_subtree(node, size_);
  }

  Builder& b_;
  const PackedBcast& data_;
  int size_;
  int node_;
  Blocks blocks_;
};

}  // namespace

void bcast_scatter_allgather(Builder& b) {
  const bool is_root = b.shape().rank == b.shape().root;
  PackedBcast data(b);
  if (is_root) data.pack();
  ScatterAllgather bcast(b, data);
  bcast.scatter();
  bcast.allgather();
  if (!is_root) data.unpack();
}

}  // namespace weft
