// Reduce-scatter by recursive halving: log2(p) rounds for p ranks, each with half of the remaining
// data. The operator must commute. If the number of ranks is not a power of two, one rank of some
// pairs acts for both and sends the other its block.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include <vector>

#include "coll/build_functions.h"
#include "coll/recursive_halving.h"

namespace weft {
namespace {

// Returns the borders, in elements, between the parts of the acting ranks. A part consists of the
// consecutive blocks of the ranks for which one rank acts.
std::vector<std::int64_t> borders(const Shape& s, const Fold& fold) {
  std::vector<std::int64_t> all{0};
  std::int64_t end = 0;
  for (int rank = 0; rank < s.size; ++rank) {
    end += outgoing(s, rank).count;
    const bool last_of_position = fold.partner(rank) < rank;
    if (last_of_position) all.push_back(end);
  }
  return all;
}

}  // namespace

void reduce_scatter_recursive_halving(Builder& b) {
  const Shape& s = b.shape();
  const Operand result = incoming(s, s.rank);
  if (s.size == 1) return b.copy(outgoing(s, 0), result);
  const Fold fold(s.size);
  const int partner = fold.partner(s.rank);
  const int position = fold.position(s.rank);
  const std::vector<std::int64_t> all = borders(s, fold);
  if (position < 0) {
    b.send(partner, b.input(), all.back());
    b.end_round();
    return b.recv(partner, result);
  }
  RecursiveHalving halving(b, fold, all);
  if (partner >= 0) halving.take_in_partner(partner);
  halving.reduce_scatter();
  // If this rank acts for a partner, the partner is the lower rank of the pair, so its block comes
  // first.
  const Operand sum = halving.parts(position, position + 1);
  const std::int64_t of_partner = sum.count - result.count;
  if (partner >= 0) b.send(partner, sum.at, of_partner);
  b.copy(sum.at + of_partner * b.extent(Unit::recv), result.at, result.count);
}

}  // namespace weft
