// Flat bcast in the node's shared memory: the root copies the data in, chunk by chunk, and all
// others copy them out at the same time. With data of n bytes, each rank copies n bytes, however
// many ranks there are; a few bytes travel in the root's slot, one cache line. With d NUMA domains,
// one rank of each other domain first copies the data into its own domain, so (d - 1) n bytes cross
// domain borders, the minimum. Graham, Shipman, MPI support for multi-core architectures,
// EuroPVM/MPI 2008 (fan-out)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/packed_block.h"

namespace weft {
namespace {

// Returns the rank from whose shared memory the ranks of a NUMA domain copy the data.
int leader_of(const Shape& s, const Domains& domains, int domain) {
  return domain == domains.of(s.root) ? s.root : domains.ranks(domain)[0];
}

void wait_until_read(const Shape& s, const Domains& domains, const NodeChunks& chunk) {
  for (const int rank : domains.ranks(domains.of(s.rank))) chunk.wait_until_read(rank);
  if (s.rank != s.root) return;
  // The leader of a domain signals when it has copied a chunk into its domain. The root must not
  // overwrite the chunk two before the current one until then. wait() counts from the signals of
  // all earlier chunks, so -1 means the signal of that chunk.
  constexpr int kTwoChunksBefore = -1;
  if (chunk.begin() < chunk.distance_of_reuse()) return;
  for (int domain = 0; domain < domains.count(); ++domain)
    chunk.wait(leader_of(s, domains, domain), kTwoChunksBefore);
}

void bcast_by_domains(Builder& b, const Domains& domains) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (s.size == 1 || bytes == 0) return;
  NodeChunks chunk(b, bytes);
  PackedBlock data(b, outgoing(s, 0), chunk.is_cut());
  const bool is_root = s.rank == s.root;
  const int leader = leader_of(s, domains, domains.of(s.rank));
  if (is_root) data.pack();
  for (; !chunk.done(); chunk.next()) {
    if (s.rank == leader) {
      wait_until_read(s, domains, chunk);
      chunk.wait(s.root);
      if (is_root)
        data.copy_to(chunk.of(s.root), chunk.begin(), chunk.count());
      else
        b.copy(chunk.of(s.root), chunk.of(s.rank), chunk.count(), Unit::byte);
      chunk.signal();
    } else {
      chunk.signal_if_reused();
      chunk.wait(leader);
    }
    if (!is_root) data.copy_from(chunk.of(leader), chunk.begin(), chunk.count());
  }
  if (!is_root) data.unpack();
}

}  // namespace

void bcast_node_flat(Builder& b) {
  bcast_by_domains(b, Domains::one(b.shape().size));
}

void bcast_domain_flat(Builder& b) {
  bcast_by_domains(b, *b.shape().domains);
}

}  // namespace weft
