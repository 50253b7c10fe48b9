// Allgather and allgatherv in the node's memory: every rank copies its block there part after part,
// and copies the others' out. With blocks of n bytes each rank copies (p + 1) n, in place p n;
// blocks of a few bytes travel in the lines of the counters. Graham, Shipman, MPI support for
// multi-core architectures, EuroPVM/MPI 2008
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

std::int64_t bytes_of(const Shape& s, int rank) {
  return payload_bytes(s, incoming(s, rank));
}

std::int64_t longest_block(const Shape& s) {
  std::int64_t most = 0;
  for (int rank = 0; rank < s.size; ++rank) most = std::max(most, bytes_of(s, rank));
  return most;
}

}  // namespace

void allgather_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t most = longest_block(s);
  if (s.size == 1) return copy_own_block(b);
  if (most == 0) return;
  b.synchronizes();
  NodeParts part(b, most);
  if (!part.is_cut()) b.exchanges_once();
  PackedBlock own(b, outgoing(s, s.rank), part.is_cut());
  std::vector<PackedBlock> others;  // by distance
  for (int i = 1; i < s.size; ++i)
    others.emplace_back(b, incoming(s, ring_at(s.rank, i, s.size)), part.is_cut());
  own.pack();
  for (; !part.done(); part.next()) {
    own.copy_to(part.of(s.rank), part.begin(), part.count(bytes_of(s, s.rank)));
    part.signal();
    for (int i = 1; i < s.size; ++i) {
      const int rank = ring_at(s.rank, i, s.size);
      part.wait(rank);
      others[static_cast<std::size_t>(i - 1)].copy_from(part.of(rank), part.begin(),
                                                        part.count(bytes_of(s, rank)));
    }
  }
  for (PackedBlock& block : others) block.unpack();
  copy_own_block(b);
}

}  // namespace weft
