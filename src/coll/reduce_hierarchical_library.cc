// Hierarchical reduce that uses the MPI library between nodes: the ranks of a node reduce in its
// shared memory, and the library reduces the nodes' sums, chunk by chunk, while the next chunk is
// being reduced within the node. The leaders are the ranks with the root's node rank. If the
// operator does not commute, they are the first ranks of the nodes, and the leader on the root's
// node passes the result to the root.
// Hasanov, Lastovetsky, J. Supercomputing 73, 2017; Graham et al., Cheetah, CCGrid 2011
#include "coll/build_functions.h"
#include "coll/node_sums.h"

namespace weft {
namespace {

int leader_node_rank(const Shape& s) {
  return s.commutative ? s.nodes->local_rank(s.root) : 0;
}

// Returns the leader on the root's node: the root itself, or that node's first rank if the operator
// does not commute.
int first_leader(const Shape& s) {
  return s.nodes->ranks(s.nodes->of(s.root))[static_cast<std::size_t>(leader_node_rank(s))];
}

// Reduces the nodes' sums by the MPI library's reduce between the leaders. Returns where the leader
// on the root's node has the result.
Location lead(Builder& b, NodeSums& sums) {
  const Shape& s = b.shape();
  const bool is_first = s.rank == first_leader(s);
  Location result{Buffer::recv, 0};
  if (is_first && s.rank != s.root) result = b.temp(s.recv.count, Unit::recv);
  sums.reduce(0, sums.shared(0));
  for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
    b.end_round();
    const Operand here{sums.shared(chunk), sums.count(chunk), Unit::recv};
    const Operand all{result + sums.offset(chunk), sums.count(chunk), Unit::recv};
    b.leaders(Kind::reduce, first_leader(s), here, is_first ? all : Operand{});
    if (chunk + 1 < sums.chunks()) sums.reduce(chunk + 1, sums.shared(chunk + 1));
    b.end_round();
    sums.publish();
  }
  return result;
}

}  // namespace

void reduce_hierarchical_library(Builder& b) {
  const Shape& s = b.shape();
  if (s.recv.count == 0) return;
  NodeSums sums(b, 1, NodeSums::Result::for_the_leader, leader_node_rank(s));
  Location result;
  if (sums.leads())
    result = lead(b, sums);
  else
    for (std::int64_t chunk = 0; chunk < sums.chunks(); ++chunk) sums.reduce(chunk, {});
  const int first = first_leader(s);
  if (first == s.root) return;
  b.end_round();
  if (s.rank == first) b.send(s.root, result, s.recv.count);
  if (s.rank == s.root) b.recv(first, {Buffer::recv, 0}, s.recv.count);
}

}  // namespace weft
