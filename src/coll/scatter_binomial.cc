// Binomial-tree scatter: log2(p) levels for p ranks; each node gets the blocks of its subtree in
// one message, largest subtree first. It suits short blocks.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include <algorithm>
#include <ranges>
#include <vector>

#include "coll/block_subtrees.h"
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "coll/packer.h"
#include "coll/split_tree.h"

namespace weft {
namespace {

// Adds the root's sends. One subtree may continue with rank 0 behind the last rank. Its blocks are
// packed and sent last, so that the other subtrees need not wait for the packing.
void scatter_from_root(Builder& b, const BlockSubtrees& tree) {
  const Shape& s = b.shape();
  const std::vector<int> children = tree.children();
  const auto wraps = [&](int child) { return tree.wraps(child); };
  const auto found = std::ranges::find_if(children, wraps);
  const int wrapping = found == children.end() ? -1 : *found;
  SplitTree split(b);
  const bool may_leave = wrapping < 0 || split.is_callers(wrapping);
  for (int child : std::views::reverse(children)) {
    if (child == wrapping) continue;
    if (may_leave) split.down(child);
    Operand run = outgoing(s, tree.rank_of(child));
    run.count *= tree.blocks(child);
    b.send(tree.rank_of(child), run);
  }
  copy_own_block(b);
  if (wrapping < 0) return;
  const Location packed = b.temp(tree.bytes(wrapping), Unit::byte);
  Packer blocks(b, Packer::Way::pack, packed);
  for (int i = 0; i < tree.blocks(wrapping); ++i)
    blocks.add(outgoing(s, tree.rank_of(wrapping + i)));
  blocks.finish();
  b.end_round();
  b.send(tree.rank_of(wrapping), packed, tree.bytes(wrapping), Unit::byte);
}

}  // namespace

void scatter_binomial(Builder& b) {
  const Shape& s = b.shape();
  const BlockSubtrees tree(s);
  if (s.rank == s.root) return scatter_from_root(b, tree);
  SplitTree split(b);
  split.down(tree.node());
  if (tree.is_leaf()) return b.recv(tree.parent(), incoming(s, 0));
  const Location held = b.temp(tree.own_bytes(), Unit::byte);
  b.recv(tree.parent(), held, tree.own_bytes(), Unit::byte);
  b.end_round();
  for (int child : std::views::reverse(tree.children())) {
    split.down(child);
    b.send(tree.rank_of(child), held + tree.offset(child), tree.bytes(child), Unit::byte);
  }
  b.copy({held, tree.block_bytes(), Unit::byte}, incoming(s, 0));
}

}  // namespace weft
