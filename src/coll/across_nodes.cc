// By doubling, the value goes to and fro between two places, since a sum may not be written over
// its lower operand; it begins where it has to for ending at the result.
#include "coll/across_nodes.h"

#include <algorithm>
#include <utility>

#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// A ring takes twice as many messages as there are nodes: pieces that are no longer than this
// take longer to begin than to travel.
constexpr std::int64_t kLeastPiece_bytes = 2 * 1024;

bool takes_ring(const Shape& s, std::int64_t most) {
  const int nodes = s.nodes->count();
  return s.commutative && nodes > 2 && most * s.recv.extent / nodes >= kLeastPiece_bytes;
}

}  // namespace

AcrossNodes::AcrossNodes(Builder& b, std::vector<int> leaders, int node, std::int64_t most)
    : b_(b),
      leaders_(std::move(leaders)),
      node_(node),
      fold_(size()),
      ring_(takes_ring(b.shape(), most)),
      exchanges_(exchanges()) {
  const std::int64_t inbox = ring_ ? Blocks{most, size()}.length(0) : most;
  scratch_[0] = b.temp(inbox, Unit::recv);
  scratch_[1] = ring_ ? scratch_[0] : b.temp(inbox, Unit::recv);
}

std::vector<AcrossNodes::Exchange> AcrossNodes::exchanges() const {
  std::vector<Exchange> all;
  const int folded = fold_.partner(node_), position = fold_.position(node_);
  if (position < 0) return all;
  if (folded >= 0) all.push_back({leader(folded), false, true});
  for (int distance = 1; distance < fold_.power(); distance *= 2) {
    const int node = fold_.rank_at(position ^ distance);
    all.push_back({leader(node), true, node < node_});
  }
  return all;
}

Location AcrossNodes::operand(std::int64_t part, Location result) const {
  if (ring_) return result;
  if (fold_.position(node_) < 0) return scratch(part);
  const auto moves = std::count_if(exchanges_.begin(), exchanges_.end(),
                                   [](const Exchange& e) { return !e.peer_is_lower; });
  return moves % 2 == 0 ? result : scratch(part);
}

void AcrossNodes::reduce(std::int64_t part, Location result, std::int64_t count,
                         const std::function<void()>& meanwhile) {
  if (ring_)
    around_the_ring(part, result, count, meanwhile);
  else
    by_doubling(part, result, count, meanwhile);
}

void AcrossNodes::by_doubling(std::int64_t part, Location result, std::int64_t count,
                              const std::function<void()>& meanwhile) {
  const int folded = fold_.partner(node_);
  Location value = operand(part, result);
  if (exchanges_.empty()) {  // the other one of the pair acts for both
    b_.recv(leader(folded), result, count);
    b_.send(leader(folded), value, count);
    meanwhile();
    return b_.end_round();
  }
  bool first = true;
  for (const Exchange& exchange : exchanges_) {
    if (!first) b_.end_round();
    const Location other = value == result ? scratch(part) : result;
    b_.recv(exchange.peer, other, count);
    if (exchange.sends) b_.send(exchange.peer, value, count);
    if (std::exchange(first, false)) meanwhile();
    b_.end_round();
    if (exchange.peer_is_lower) {
      b_.reduce(other, value, count);
    } else {
      b_.reduce(value, other, count);
      value = other;
    }
  }
  if (folded < 0) return;
  b_.end_round();
  b_.send(leader(folded), result, count);
}

void AcrossNodes::around_the_ring(std::int64_t part, Location result, std::int64_t count,
                                  const std::function<void()>& meanwhile) {
  const Blocks pieces{count, size()};
  const int before = leader(ring_at(node_, -1, size())), behind = leader(ring_at(node_, 1, size()));
  const auto at = [&](int piece) { return result + pieces.begin(piece) * b_.extent(Unit::recv); };
  for (int step = 0; step < 2 * (size() - 1); ++step) {
    const bool reduces = step < size() - 1;
    const int out = ring_at(node_, -step, size()), in = ring_at(out, -1, size());
    b_.recv(before, reduces ? scratch(part) : at(in), pieces.length(in));
    b_.send(behind, at(out), pieces.length(out));
    if (step == 0) meanwhile();
    b_.end_round();
    if (!reduces) continue;
    b_.reduce(scratch(part), at(in), pieces.length(in));
    b_.end_round();
  }
}

}  // namespace weft
