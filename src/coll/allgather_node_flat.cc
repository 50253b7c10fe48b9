// Allgather(v) in the node's shared memory: every rank copies its block in, chunk by chunk, and
// copies the others out. With p ranks and blocks of n bytes, each rank copies (p + 1) n bytes, in
// place p n. Blocks of a few bytes travel in the ranks' slots, one cache line each. With NUMA
// domains, each rank copies a share of the other domains' blocks into its own domain's memory, so
// each block crosses each domain border once, the minimum. Graham, Shipman, MPI support for
// multi-core architectures, EuroPVM/MPI 2008; Li, Hoefler, Snir, NUMA-aware shared-memory
// collective communication for MPI, HPDC 2013
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/domain_homes.h"
#include "coll/node_chunks.h"
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

class Allgather {
 public:
  Allgather(Builder& b, const Domains& domains)
      : b_(b),
        s_(b.shape()),
        domains_(domains),
        domain_(domains.of(s_.rank)),
        homes_(domains, s_.size),
        chunk_(domains.count() > 1
                   ? NodeChunks(b, longest_block(s_), 1, kFetched, INT64_MAX, homes_.most_held())
                   : NodeChunks::exchanged(b, longest_block(s_), 1)),
        own_(b, outgoing(s_, s_.rank), chunk_.is_cut()) {
    if (domains.count() == 1 && !chunk_.is_cut()) b.exchanges_once();
    for (int i = 1; i < s_.size; ++i)
      others_.emplace_back(b, incoming(s_, ring_at(s_.rank, i, s_.size)), chunk_.is_cut());
  }

  void run() {
    own_.pack();
    for (; !chunk_.done(); chunk_.next()) {
      own_.copy_to(shared(s_.rank, domain_), chunk_.begin(), count(s_.rank));
      chunk_.signal();
      if (domains_.count() > 1) fetch();
      for (int i = 1; i < s_.size; ++i) copy_out(i);
    }
    for (PackedBlock& block : others_) block.unpack();
    copy_own_block(b_);
  }

 private:
  // A rank signals twice per chunk: when it has written its block, and when it has fetched blocks
  // of other domains.
  static constexpr int kWritten = 1, kFetched = 2;

  std::int64_t count(int block) const { return chunk_.count(bytes_of(s_, block)); }
  Location shared(int block, int domain) const {
    const DomainHomes::Home& home = homes_.of(block, domain);
    return chunk_.of(home.rank, home.index);
  }

  void fetch() {
    for (const int block : homes_.held_by(s_.rank)) {
      const int domain = domains_.of(block);
      if (domain == domain_) continue;
      chunk_.wait(block, kWritten);
      b_.copy(shared(block, domain), shared(block, domain_), count(block), Unit::byte);
    }
    chunk_.signal();
  }

  void copy_out(int distance) {
    const int block = ring_at(s_.rank, distance, s_.size);
    const bool is_here = domains_.of(block) == domain_;
    chunk_.wait(homes_.of(block, domain_).rank, is_here ? kWritten : kFetched);
    others_[static_cast<std::size_t>(distance - 1)].copy_from(shared(block, domain_),
                                                              chunk_.begin(), count(block));
  }

  Builder& b_;
  const Shape& s_;
  const Domains& domains_;
  const int domain_;
  const DomainHomes homes_;
  NodeChunks chunk_;
  PackedBlock own_;
  // Blocks of the other ranks, beginning with the rank above this one.
  std::vector<PackedBlock> others_;
};

void allgather_by_domains(Builder& b, const Domains& domains) {
  const Shape& s = b.shape();
  if (s.size == 1) return copy_own_block(b);
  if (longest_block(s) == 0) return;
  b.synchronizes();
  Allgather(b, domains).run();
}

}  // namespace

void allgather_node_flat(Builder& b) {
  allgather_by_domains(b, Domains::one(b.shape().size));
}

void allgather_domain_flat(Builder& b) {
  allgather_by_domains(b, *b.shape().domains);
}

}  // namespace weft
