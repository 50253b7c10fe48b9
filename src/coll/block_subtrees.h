// BlockSubtrees: says which blocks each rank sends or receives in a gather or scatter along a
// binomial tree whose node 0 is the root. These are the blocks of its subtree, a run of consecutive
// nodes. Sizes are in bytes, since only the root's buffer has all blocks, and other ranks know only
// the size of another rank's block.
#pragma once

#include <vector>

#include "patterns/ring.h"
#include "patterns/tree.h"
#include "schedule/builder.h"

namespace weft {

class BlockSubtrees {
 public:
  explicit BlockSubtrees(const Shape& shape)
      : size_(shape.size),
        root_(shape.root),
        node_(ring_at(shape.rank, -shape.root, shape.size)),
        block_bytes_(agreed_bytes(shape).value_or(0) / shape.size) {}

  int node() const { return node_; }
  std::vector<int> children() const { return binomial_children(node_, size_); }
  int parent() const { return rank_of(binomial_parent(node_)); }
  int rank_of(int node) const { return ring_at(root_, node, size_); }
  bool is_leaf() const { return blocks(node_) == 1; }

  int blocks(int node) const { return binomial_subtree(node, size_); }
  std::int64_t bytes(int node) const { return blocks(node) * block_bytes_; }
  std::int64_t own_bytes() const { return bytes(node_); }
  std::int64_t block_bytes() const { return block_bytes_; }
  // Returns where the blocks of a child's subtree begin among the blocks of this node's subtree, in
  // bytes.
  std::int64_t offset(int child) const { return (child - node_) * block_bytes_; }
  // Returns whether the ranks of the node's subtree continue with rank 0 behind the last rank, so
  // that their blocks are not contiguous in the root's buffer.
  bool wraps(int node) const { return rank_of(node) + blocks(node) > size_; }

 private:
  int size_;
  int root_;
  int node_;
  std::int64_t block_bytes_;
};

}  // namespace weft
