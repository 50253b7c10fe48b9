// Hierarchical allreduce: the ranks of a node reduce in its shared memory, leaders reduce between
// the nodes, and the result returns through shared memory. While a chunk is in transit between
// nodes, the next one is reduced within the node. If all nodes have equally many ranks, each rank
// is the leader for its block of the vector; otherwise, or for short vectors, one rank per node is.
// Leaders use messages, or the MPI library's own allreduce of each chunk. With one leader per node
// only one process of each node sends, as core agents want it.
// Bayatpour, Chakraborty, Subramoni, Lu, Panda, Scalable reduction collectives with data
// partitioning-based multi-leader design, SC17; Jocksch, Piccinali, shared-memory persistent
// allreduce (pipelining with the network)
#include "coll/across_nodes.h"
#include "coll/build_functions.h"
#include "coll/node_sums.h"

namespace weft {
namespace {

// The least bytes of a leader's message between nodes. A shorter message takes nearly as long as
// one of this size.
constexpr std::int64_t kLeastShare_bytes = 4 * 1024;

int leaders_per_node(const Shape& s) {
  const int here = ranks_here(s);
  const bool each = s.nodes->all_alike() && s.commutative &&
                    s.recv.bytes() >= here * kLeastShare_bytes && s.recv.count >= here;
  return each ? here : 1;
}

// Returns the ranks with this node rank, indexed by node. They are the leaders for the same block
// of the vector.
std::vector<int> fellow_leaders(const Nodes& nodes, int node_rank) {
  std::vector<int> all;
  for (int node = 0; node < nodes.count(); ++node)
    all.push_back(nodes.ranks(node)[static_cast<std::size_t>(node_rank)]);
  return all;
}

void lead(Builder& b, NodeSums& sums) {
  const Shape& s = b.shape();
  const int node_rank = node_rank_of(s, s.rank);
  AcrossNodes across(b, fellow_leaders(*s.nodes, node_rank), node_of(s), sums.most());
  const auto reduce_here = [&](std::int64_t chunk) {
    sums.reduce(chunk, across.operand(chunk, sums.shared(chunk)));
  };
  reduce_here(0);
  b.end_round();
  for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
    across.reduce(chunk, sums.shared(chunk), sums.count(chunk), [&] {
      if (chunk + 1 < sums.chunks()) reduce_here(chunk + 1);
      if (chunk > 0) sums.copy_out(chunk - 1);
    });
    sums.publish();
  }
  sums.copy_out(sums.chunks() - 1);
}

void lead_by_library(Builder& b, NodeSums& sums) {
  const auto reduce_here = [&](std::int64_t chunk) { sums.reduce(chunk, sums.shared(chunk)); };
  reduce_here(0);
  b.end_round();
  for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
    const Operand sum{sums.shared(chunk), sums.count(chunk), Unit::recv};
    b.leaders(Kind::allreduce, 0, sum, sum);
    if (chunk + 1 < sums.chunks()) reduce_here(chunk + 1);
    if (chunk > 0) sums.copy_out(chunk - 1);
    b.end_round();
    sums.publish();
  }
  sums.copy_out(sums.chunks() - 1);
}

void follow(NodeSums& sums) {
  sums.reduce(0, {});
  for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
    if (chunk + 1 < sums.chunks()) sums.reduce(chunk + 1, {});
    if (chunk > 0) sums.copy_out(chunk - 1);
    sums.publish();
  }
  sums.copy_out(sums.chunks() - 1);
}

void build(Builder& b, int leaders, void (*lead)(Builder&, NodeSums&)) {
  if (b.shape().recv.count == 0) return;
  b.synchronizes();
  NodeSums sums(b, leaders, NodeSums::Result::for_all);
  if (sums.leads())
    lead(b, sums);
  else
    follow(sums);
}

}  // namespace

void allreduce_hierarchical(Builder& b) {
  build(b, leaders_per_node(b.shape()), lead);
}

void allreduce_hierarchical_one_leader(Builder& b) {
  build(b, 1, lead);
}

void allreduce_hierarchical_library(Builder& b) {
  build(b, leaders_per_node(b.shape()), lead_by_library);
}

}  // namespace weft
