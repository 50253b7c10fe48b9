// Rabenseifner's reduce: reduce-scatter by recursive halving, then a gather of the parts to the
// root by recursive doubling. It suits long vectors: a rank transfers about twice the vector's
// bytes, in 2 log2(p) rounds. If p is not a power of two, some ranks first send their data to a
// neighbour; the root is never one of them. Rabenseifner, ICCS 2004
#include "coll/build_functions.h"
#include "coll/recursive_halving.h"
#include "patterns/blocks.h"

namespace weft {
namespace {

// Gathers the parts of the result at the root. At each distance, those ranks send or receive whose
// position in the Fold agrees with the root's in the lower bits; each of them holds `distance`
// parts.
void gather(Builder& b, const Fold& fold, const RecursiveHalving& halving) {
  const int position = halving.position();
  const int top = fold.position(b.shape().root);
  for (int distance = 1; distance < fold.power(); distance *= 2) {
    const int peer = fold.rank_at(position ^ distance);
    const int given = position / distance * distance;
    const int taken = given ^ distance;
    if (((position ^ top) & distance) != 0)
      return b.send(peer, halving.parts(given, given + distance));
    b.recv(peer, halving.parts(taken, taken + distance));
    b.end_round();
  }
}

}  // namespace

void reduce_rabenseifner(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const Location result{Buffer::recv, 0};
  if (s.size == 1) return b.copy(b.input(), result, count);
  const Fold fold(s.size, s.root);
  const int partner = fold.partner(s.rank);
  if (fold.position(s.rank) < 0) return b.send(partner, b.input(), count);
  const auto sum = s.rank == s.root ? std::optional(result) : std::nullopt;
  RecursiveHalving halving(b, fold, Blocks{count, fold.power()}.borders(), sum);
  if (partner >= 0) halving.take_in_partner(partner);
  halving.reduce_scatter();
  gather(b, fold, halving);
}

}  // namespace weft
