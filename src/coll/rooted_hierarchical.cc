// Hierarchical gather and scatter with one leader per node (node_exchange.h): the blocks of a node
// form one message to or from the first rank of the root's node, and pass through the shared memory
// of both nodes. With blocks of n bytes, a node with m ranks sends or receives m n bytes, the
// minimum, in one message for each piece. The root and all other ranks need only their node's
// memory, so that core agents can carry their parts out.
// Träff, Rougier, MPI collectives and datatypes for hierarchical all-to-all communication,
// EuroMPI/ASIA 2014
#include "coll/build_functions.h"
#include "coll/node_exchange.h"

namespace weft {
namespace {

void build(Builder& b) {
  if (*agreed_bytes(b.shape()) == 0) return;
  NodeExchange(b, NodeExchange::Speaker::first).run();
}

}  // namespace

void gather_hierarchical_one_leader(Builder& b) {
  build(b);
}

void scatter_hierarchical_one_leader(Builder& b) {
  build(b);
}

}  // namespace weft
