// Implements the allreduce between the leaders of the nodes (across_nodes.h). In recursive doubling
// the partial sum alternates between two buffers, since a reduction must not overwrite its lower
// operand. It starts in that buffer from which it ends at the result.
#include "coll/across_nodes.h"

#include <utility>

#include "patterns/blocks.h"

namespace weft {
namespace {

// The least bytes that a leader reduces by itself in recursive halving. Halving sends twice as many
// messages as recursive doubling, and latency dominates the time of shorter ones.
constexpr std::int64_t kLeastPiece_bytes = 2 * 1024;

bool pays_to_halve(const Shape& s, const Fold& fold, std::int64_t most) {
  return s.commutative && fold.power() > 2 &&
         most * s.recv.extent / fold.power() >= kLeastPiece_bytes;
}

}  // namespace

AcrossNodes::AcrossNodes(Builder& b, std::vector<int> leaders, int node, std::int64_t most)
    : b_(b),
      leaders_(std::move(leaders)),
      node_(node),
      fold_(size()),
      halves_(pays_to_halve(b.shape(), fold_, most)) {
  for (Location& scratch : scratch_) scratch = b.temp(most, Unit::recv);
}

Location AcrossNodes::operand(std::int64_t chunk, Location result) const {
  if (fold_.position(node_) < 0) return scratch(chunk);
  bool moves = false;
  if (!halves_)
    for (int distance = 1; distance < fold_.power(); distance *= 2)
      if (partner(distance) > node_) moves = !moves;
  return moves ? scratch(chunk) : result;
}

void AcrossNodes::reduce(std::int64_t chunk, Location result, std::int64_t count,
                         const std::function<void()>& meanwhile) {
  if (fold_.position(node_) < 0) return leave_to_the_other(chunk, result, count, meanwhile);
  const int folded = fold_.partner(node_);
  if (folded >= 0) {
    const Location value = operand(chunk, result);
    const Location other = value == result ? scratch(chunk) : result;
    b_.recv(leader(folded), other, count);
    meanwhile();
    b_.end_round();
    b_.reduce(other, value, count);
    b_.end_round();
  }
  const std::function<void()> nothing = [] {};
  if (halves_)
    by_halving(chunk, result, count, folded < 0 ? meanwhile : nothing);
  else
    by_doubling(chunk, result, count, folded < 0 ? meanwhile : nothing);
  if (folded < 0) return;
  b_.end_round();
  b_.send(leader(folded), result, count);
}

// Sends this node's operand to the other node of its pair, which takes part in the reduction for
// both, and receives the result. It is for numbers of nodes that are not a power of two.
void AcrossNodes::leave_to_the_other(std::int64_t chunk, Location result, std::int64_t count,
                                     const std::function<void()>& meanwhile) {
  const int other = leader(fold_.partner(node_));
  b_.recv(other, result, count);
  b_.send(other, operand(chunk, result), count);
  meanwhile();
  b_.end_round();
}

void AcrossNodes::by_doubling(std::int64_t chunk, Location result, std::int64_t count,
                              const std::function<void()>& meanwhile) {
  Location value = operand(chunk, result);
  for (int distance = 1; distance < fold_.power(); distance *= 2) {
    if (distance > 1) b_.end_round();
    const int peer = partner(distance);
    const Location other = value == result ? scratch(chunk) : result;
    b_.recv(leader(peer), other, count);
    b_.send(leader(peer), value, count);
    if (distance == 1) meanwhile();
    b_.end_round();
    if (peer < node_) {
      b_.reduce(other, value, count);
    } else {
      b_.reduce(value, other, count);
      value = other;
    }
  }
}

// Reduces by recursive halving, then recursive doubling. The vector is divided into pieces. The
// leader works on pieces first, …, last - 1, of which it has the sums once halving has ended.
void AcrossNodes::by_halving(std::int64_t chunk, Location result, std::int64_t count,
                             const std::function<void()>& meanwhile) {
  const Blocks pieces{count, fold_.power()};
  const auto at = [&](int piece) { return result + pieces.begin(piece) * b_.extent(Unit::recv); };
  int first = 0, last = fold_.power();
  for (int distance = fold_.power() / 2; distance > 0; distance /= 2) {
    const int middle = first + distance, peer = leader(partner(distance));
    const bool upper = (fold_.position(node_) & distance) != 0;
    b_.send(peer, at(upper ? first : middle),
            upper ? pieces.length(first, middle) : pieces.length(middle, last));
    (upper ? first : last) = middle;
    b_.recv(peer, scratch(chunk), pieces.length(first, last));
    if (2 * distance == fold_.power()) meanwhile();
    b_.end_round();
    b_.reduce(scratch(chunk), at(first), pieces.length(first, last));
    b_.end_round();
  }
  for (int distance = 1; distance < fold_.power(); distance *= 2) {
    const bool upper = (fold_.position(node_) & distance) != 0;
    const int peer = leader(partner(distance));
    const int other = upper ? first - distance : last;
    b_.send(peer, at(first), pieces.length(first, last));
    b_.recv(peer, at(other), pieces.length(other, other + distance));
    (upper ? first : last) += upper ? -distance : distance;
    b_.end_round();
  }
}

}  // namespace weft
