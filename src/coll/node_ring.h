// Copy-in with reduction in the node's memory: the vector has a block for each rank, and each block
// goes round: one rank copies its part of it in, the next ones add theirs in place, the owner of
// the block last. Each rank reads its vector once, however many ranks there are. Long blocks go
// piece by piece, so that what is shared stays in the caches. For operators that commute.
// Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks)
#pragma once

#include <cstdint>
#include <vector>

#include "coll/node_parts.h"

namespace weft {

class NodeRing {
 public:
  // Block i is [borders[i], borders[i + 1]) of the elements of the input.
  NodeRing(Builder& b, std::vector<std::int64_t> borders);

  bool done() const { return parts_.done(); }
  void next() { parts_.next(); }

  // Where a block's piece lies in the node's memory, and how far into the vector.
  Location shared(int block) const { return parts_.of(block); }
  std::int64_t offset(int block) const;
  std::int64_t count(int block) const { return parts_.count(length(block)); }

  // `reader` is the only one to copy out others' blocks. Before copy_in().
  void wait_until_read(int reader) const { parts_.wait_until_read(reader); }
  // This rank's part of all blocks; the sum of its own block goes to `own`.
  void copy_in(Location own);
  // The sum of a block, to its place in the receive buffer.
  void copy_out(int block);

 private:
  std::int64_t length(int block) const;

  Builder& b_;
  const std::vector<std::int64_t> borders_;
  NodeParts parts_;  // a slot for each block
};

}  // namespace weft
