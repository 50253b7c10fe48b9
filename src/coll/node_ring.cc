// A rank is right behind the one before it: its n-th signal of a part says that it has added its
// piece to the n-th block it comes to.
#include "coll/node_ring.h"

#include <algorithm>
#include <utility>

#include "patterns/ring.h"

namespace weft {
namespace {

std::int64_t longest(const std::vector<std::int64_t>& borders) {
  std::int64_t most = 0;
  for (std::size_t i = 1; i < borders.size(); ++i)
    most = std::max(most, borders[i] - borders[i - 1]);
  return most;
}

}  // namespace

NodeRing::NodeRing(Builder& b, std::vector<std::int64_t> borders)
    : b_(b),
      borders_(std::move(borders)),
      parts_(b, longest(borders_), b.shape().recv.extent, b.shape().size) {}

std::int64_t NodeRing::offset(int block) const {
  const std::int64_t element = borders_[static_cast<std::size_t>(block)] + parts_.begin();
  return element * b_.shape().recv.extent;
}

std::int64_t NodeRing::length(int block) const {
  const auto i = static_cast<std::size_t>(block);
  return borders_[i + 1] - borders_[i];
}

void NodeRing::copy_in(Location own) {
  const Shape& s = b_.shape();
  const int before = ring_at(s.rank, -1, s.size);
  for (int step = 0; step < s.size; ++step) {
    const int block = ring_at(before, -step, s.size);
    const Location input = b_.input() + offset(block);
    if (step == 0) {
      b_.copy(input, shared(block), count(block));
    } else {
      parts_.wait(before, step);
      b_.reduce(input, shared(block), block == s.rank ? own : shared(block), count(block));
    }
    parts_.signal();
  }
}

void NodeRing::copy_out(int block) {
  parts_.wait(block);
  b_.copy(shared(block), Location{Buffer::recv, offset(block)}, count(block));
}

}  // namespace weft
