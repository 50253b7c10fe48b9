// Allreduce by recursive doubling: in each round, partners at doubling distances exchange whole
// partial results. It takes log2(p) rounds for p ranks, the minimum, and suits short messages.
// Every rank combines the parts of lower ranks with those of higher ones, so the result is bitwise
// identical everywhere and right for non-commutative operators.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include <vector>

#include "coll/accumulator.h"
#include "coll/build_functions.h"
#include "patterns/doubling.h"

namespace weft {
namespace {

std::vector<int> exchange_partners(const Fold& fold, int rank) {
  std::vector<int> partners;
  for (int distance = 1; distance < fold.power(); distance *= 2)
    partners.push_back(fold.rank_at(fold.position(rank) ^ distance));
  return partners;
}

}  // namespace

void allreduce_recursive_doubling(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const Location result{Buffer::recv, 0};
  const Fold fold(s.size);
  const int folded = fold.partner(s.rank);
  if (fold.position(s.rank) < 0) {
    b.send(folded, b.input(), count);
    b.end_round();
    b.recv(folded, result, count);
    return;
  }
  const std::vector<int> partners = exchange_partners(fold, s.rank);
  std::vector<Side> parts;
  if (folded >= 0) parts.push_back(Side::lower);
  for (int partner : partners) parts.push_back(partner < s.rank ? Side::lower : Side::higher);

  Accumulator sum(b, result, parts);
  if (folded >= 0) {
    sum.receive(folded);
    sum.absorb();
  }
  for (int partner : partners) {
    sum.receive(partner);
    b.send(partner, sum.value(), count);
    sum.absorb();
  }
  sum.finish();
  b.end_round();
  if (folded >= 0) b.send(folded, result, count);
}

}  // namespace weft
