// Hierarchical alltoall: all data from one node to another form one message (node_exchange.h). With
// m ranks per node, k - 1 messages instead of (k - 1) m^2 leave each of k nodes. It suits short
// blocks. The ranks of a node share the other nodes; with one leader per node, its first rank
// exchanges the data of all.
// Träff, Rougier, MPI collectives and datatypes for hierarchical all-to-all communication,
// EuroMPI/ASIA 2014
#include "coll/build_functions.h"
#include "coll/node_exchange.h"

namespace weft {
namespace {

void build(Builder& b, NodeExchange::Speaker speaker) {
  if (b.shape().recv.bytes() == 0) return;
  b.synchronizes();
  NodeExchange(b, speaker).run();
}

}  // namespace

void alltoall_hierarchical(Builder& b) {
  build(b, NodeExchange::Speaker::in_turn);
}

void alltoall_hierarchical_one_leader(Builder& b) {
  build(b, NodeExchange::Speaker::first);
}

}  // namespace weft
