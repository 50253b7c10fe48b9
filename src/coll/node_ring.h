// NodeRing: a reduction in the node's shared memory. The vector has a block for each rank, and each
// block circulates: one rank copies its operand of the block in, the next ones add theirs in place,
// and the owner of the block is the last. Each rank reads its vector once, whatever the number of
// ranks. Long blocks are divided into pieces, so that the shared data stay in cache. The operator
// must commute. With several NUMA domains each block circulates in each of them, and its owner adds
// the sums of the others: for a vector of n bytes, (d - 1) n bytes cross the borders of d domains,
// the minimum. Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction,
// chunks, several sockets)
#pragma once

#include <cstdint>
#include <vector>

#include "coll/domain_homes.h"
#include "coll/node_chunks.h"

namespace weft {

class NodeRing {
 public:
  enum class Result : std::uint8_t {
    own_block,  // each rank keeps the sum of its own block
    for_one,    // one rank copies all blocks out; the blocks belong to the ranks of its domain
    for_all     // all ranks copy all blocks out
  };

  // Block i belongs to rank i. It has the elements borders[i], …, borders[i + 1] - 1 of the input.
  NodeRing(Builder& b, const Domains& domains, std::vector<std::int64_t> borders, Result result);

  bool done() const { return chunks_.done(); }
  void next() { chunks_.next(); }

  // Returns where the current piece of a block begins in the vector, in bytes.
  std::int64_t offset(int block) const;
  // Returns where the sum of this rank's block must be so that others can copy it out.
  Location shared() const { return shared(b_.shape().rank, domain_); }

  // Waits until `reader`, the only rank that copies other ranks' blocks out, has read the data that
  // the current chunk will overwrite. Must precede sum_up().
  void wait_until_read(int reader) const { chunks_.wait_until_read(reader); }
  // Adds this rank's operands to all blocks. The sum of the rank's own block goes to `own` and,
  // with for_all, to its place in the receive buffer.
  void sum_up(Location own);
  // Copies the sums of all other blocks to their places in the receive buffer.
  void copy_out();

 private:
  std::int64_t length(int block) const;
  std::int64_t count(int block) const { return chunks_.count(length(block)); }
  Location shared(int block, int domain) const {
    const DomainHomes::Home& home = homes_.of(block, domain);
    return chunks_.of(home.rank, home.index);
  }

  void add_to_blocks(int home, bool is_first, Location own);
  void add_other_domains(Location own);
  void take_own(Location own);
  void fetch_from_other_domains();
  int nth_signal(int rank, int block) const;
  int neighbour(int rank, int distance) const;

  Builder& b_;
  const Domains domains_;
  const int domain_;  // NUMA domain of this rank
  const Result result_;
  const std::vector<std::int64_t> borders_;
  const DomainHomes homes_;
  const int blocks_;
  NodeChunks chunks_;
};

}  // namespace weft
