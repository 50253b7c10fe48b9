// Sorts the blocks of a neighborhood collective by peer, and adds the steps that several algorithms
// share.
#include "coll/neighbors.h"

#include <algorithm>

#include "patterns/ring.h"

namespace weft {

EdgesByPeer::EdgesByPeer(const Shape& shape, const std::vector<int>& peers) {
  const auto peer = [&](int block) { return peers[static_cast<std::size_t>(block)]; };
  for (int block = 0; block < static_cast<int>(peers.size()); ++block)
    if (peer(block) >= 0 && peer(block) != shape.rank) blocks_.push_back(block);
  std::stable_sort(blocks_.begin(), blocks_.end(), [&](int a, int b) {
    return ring_at(peer(a), -shape.rank, shape.size) < ring_at(peer(b), -shape.rank, shape.size);
  });
  for (std::size_t begin = 0, end = 0; begin < blocks_.size(); begin = end) {
    while (end < blocks_.size() && peer(blocks_[end]) == peer(blocks_[begin])) ++end;
    edges_.push_back({peer(blocks_[begin]), std::span(blocks_).subspan(begin, end - begin)});
  }
}

void receive_from_neighbors(Builder& b) {
  const Shape& s = b.shape();
  for (int i = 0; i < static_cast<int>(s.sources.size()); ++i) {
    const int peer = s.sources[static_cast<std::size_t>(i)];
    if (peer >= 0 && peer != s.rank) b.recv(peer, incoming(s, i));
  }
}

void copy_to_self(Builder& b) {
  const Shape& s = b.shape();
  auto source = s.sources.begin();
  for (int i = 0; i < static_cast<int>(s.destinations.size()); ++i) {
    if (s.destinations[static_cast<std::size_t>(i)] != s.rank) continue;
    source = std::find(source, s.sources.end(), s.rank);
    if (source == s.sources.end()) return;
    b.copy(outgoing(s, i), incoming(s, static_cast<int>(source - s.sources.begin())));
    ++source;
  }
}

}  // namespace weft
