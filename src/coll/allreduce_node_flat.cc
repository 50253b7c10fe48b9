// Allreduce in the node's memory, flat: every rank puts its vector there and reduces all of them by
// itself. One exchange, so the least latency; short vectors travel in the cache lines of the
// counters that tell of them. Each rank reads all vectors, which is too much for long ones.
// All ranks combine in the same order, so that the result is the same, bit for bit, everywhere and
// right for operators that do not commute.
// Jocksch, Piccinali, shared-memory persistent allreduce (short messages, no special treatment)
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/node_slots.h"

namespace weft {

void allreduce_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const Location result{Buffer::recv, 0};
  if (s.size == 1) {
    b.copy(b.input(), result, s.recv.count);
    return;
  }
  if (s.recv.count == 0) return;
  b.synchronizes();
  const std::int64_t extent = s.recv.extent;
  NodeSlots slots(b, s.recv.bytes());
  const std::int64_t most = std::max<std::int64_t>(slots.bytes() / extent, 1);
  for (std::int64_t begin = 0; begin < s.recv.count; begin += most) {
    const std::int64_t count = std::min(most, s.recv.count - begin);
    const Location part = result + begin * extent;
    b.copy(b.input() + begin * extent, slots.of(s.rank), count);
    const std::uint32_t there = b.signal();
    const auto wait = [&](int rank) {
      if (rank != s.rank) b.wait(rank, there);
    };
    wait(s.size - 1);
    wait(s.size - 2);
    b.reduce(slots.of(s.size - 2), slots.of(s.size - 1), part, count);
    for (int rank = s.size - 3; rank >= 0; --rank) {
      wait(rank);
      b.reduce(slots.of(rank), part, count);
    }
    slots.next();
  }
}

}  // namespace weft
