// Binomial-tree gather: log2(p) levels for p ranks; each node forwards the blocks of its subtree in
// one message. It suits short blocks.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/block_subtrees.h"
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "coll/packer.h"
#include "coll/split_tree.h"

namespace weft {
namespace {

// Adds the root's receives. One subtree may continue with rank 0 behind the last rank; its blocks
// arrive in one packed message and are then unpacked.
void gather_at_root(Builder& b, const BlockSubtrees& tree) {
  const Shape& s = b.shape();
  int wrapping = -1;
  Location packed;
  SplitTree split(b);
  for (int child : tree.children()) {
    split.up(child);
    if (tree.wraps(child)) {
      wrapping = child;
      packed = b.temp(tree.bytes(child), Unit::byte);
      b.recv(tree.rank_of(child), packed, tree.bytes(child), Unit::byte);
      continue;
    }
    Operand run = incoming(s, tree.rank_of(child));
    run.count *= tree.blocks(child);
    b.recv(tree.rank_of(child), run);
  }
  copy_own_block(b);
  b.end_round();
  split.end_of_way_up();
  if (wrapping < 0) return;
  Packer unpacked(b, Packer::Way::unpack, packed);
  for (int i = 0; i < tree.blocks(wrapping); ++i)
    unpacked.add(incoming(s, tree.rank_of(wrapping + i)));
  unpacked.finish();
}

}  // namespace

void gather_binomial(Builder& b) {
  const Shape& s = b.shape();
  const BlockSubtrees tree(s);
  if (s.rank == s.root) return gather_at_root(b, tree);
  SplitTree split(b);
  if (tree.is_leaf()) {
    split.up(tree.node());
    b.send(tree.parent(), outgoing(s, 0));
    return split.end_of_way_up();
  }
  const Location held = b.temp(tree.own_bytes(), Unit::byte);
  for (int child : tree.children()) {
    split.up(child);
    b.recv(tree.rank_of(child), held + tree.offset(child), tree.bytes(child), Unit::byte);
  }
  b.copy(outgoing(s, 0), {held, tree.block_bytes(), Unit::byte});
  b.end_round();
  split.up(tree.node());
  b.send(tree.parent(), held, tree.own_bytes(), Unit::byte);
  split.end_of_way_up();
}

}  // namespace weft
