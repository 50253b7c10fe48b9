// Rabenseifner's allreduce: reduce-scatter by recursive halving, then allgather by recursive
// doubling. It sends as many bytes as the ring, in 2 log2(p) rounds for p ranks. If p is not a
// power of two, some ranks first send their data to a neighbour and receive the result at the end.
// Rabenseifner, ICCS 2004
#include "coll/build_functions.h"
#include "coll/recursive_halving.h"
#include "patterns/blocks.h"

namespace weft {
namespace {

void allgather(Builder& b, const Fold& fold, const RecursiveHalving& halving) {
  for (int distance = 1; distance < fold.power(); distance *= 2) {
    const int peer = fold.rank_at(halving.position() ^ distance);
    const int given = halving.position() / distance * distance;
    const int taken = given ^ distance;
    b.recv(peer, halving.parts(taken, taken + distance));
    b.send(peer, halving.parts(given, given + distance));
    b.end_round();
  }
}

}  // namespace

void allreduce_rabenseifner(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const Location result{Buffer::recv, 0};
  if (s.size == 1) return b.copy(b.input(), result, count);
  const Fold fold(s.size);
  const int partner = fold.partner(s.rank);
  if (fold.position(s.rank) < 0) {
    b.send(partner, b.input(), count);
    b.end_round();
    b.recv(partner, result, count);
    return;
  }
  RecursiveHalving halving(b, fold, Blocks{count, fold.power()}.borders(), result);
  if (partner >= 0) halving.take_in_partner(partner);
  halving.reduce_scatter();
  allgather(b, fold, halving);
  if (partner >= 0) b.send(partner, result, count);
}

}  // namespace weft
