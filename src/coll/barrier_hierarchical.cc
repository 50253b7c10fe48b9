// Hierarchical barrier: the first rank of each node waits until the node's other ranks have raised
// their counters in shared memory. It then synchronizes with the first ranks of the other nodes, by
// dissemination or by the MPI library's barrier. Finally it raises its own counter, which releases
// the others. Mellor-Crummey, Scott, ACM TOCS 9(1), 1991
#include "coll/build_functions.h"
#include "patterns/ring.h"

namespace weft {
namespace {

void disseminate(Builder& b) {
  const Nodes& nodes = *b.shape().nodes;
  const int node = node_of(b.shape());
  const auto leader = [&](int distance) {
    return nodes.ranks(ring_at(node, distance, nodes.count()))[0];
  };
  for (int distance = 1; distance < nodes.count(); distance *= 2) {
    b.recv(leader(-distance), {Buffer::temp, 0}, 0, Unit::byte);
    b.send(leader(distance), {Buffer::temp, 0}, 0, Unit::byte);
    b.end_round();
  }
}

void meet_by_library(Builder& b) {
  b.leaders(Kind::barrier, 0, {}, {});
  b.end_round();
}

void build(Builder& b, void (*meet)(Builder&)) {
  const Shape& s = b.shape();
  const Nodes::Ranks here = s.nodes->ranks(node_of(s));
  b.synchronizes();
  if (s.rank != here[0]) {
    b.wait(here[0], b.signal());
    return;
  }
  for (std::size_t node_rank = 1; node_rank < here.size(); ++node_rank) b.wait(here[node_rank], 1);
  meet(b);
  if (here.size() > 1) b.signal();
}

}  // namespace

void barrier_hierarchical(Builder& b) {
  build(b, disseminate);
}

void barrier_hierarchical_library(Builder& b) {
  build(b, meet_by_library);
}

}  // namespace weft
