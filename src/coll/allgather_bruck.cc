// Bruck's allgather: ceil(log2 p) rounds for any number p of ranks. It suits short messages. Packed
// blocks are gathered in a temporary buffer, the rank's own first, and are put in order at the end.
// Bruck et al., IEEE TPDS 8(11), 1997
#include <algorithm>
#include <vector>

#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "coll/packer.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// Returns where each packed block begins, in bytes. Block i belongs to rank + i; the last entry is
// the total size.
std::vector<std::int64_t> packed_begins(const Shape& s) {
  std::vector<std::int64_t> begins{0};
  for (int i = 0; i < s.size; ++i)
    begins.push_back(begins.back() + payload_bytes(s, incoming(s, ring_at(s.rank, i, s.size))));
  return begins;
}

}  // namespace

void allgather_bruck(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return copy_own_block(b);
  const std::vector<std::int64_t> begin = packed_begins(s);
  const Location gathered = b.temp(begin.back(), Unit::byte);
  b.copy(outgoing(s, s.rank), {gathered, begin[1], Unit::byte});
  b.end_round();
  for (int have = 1; have < s.size; have *= 2) {
    const int more = std::min(have, s.size - have);
    // The receiver is the rank `have` below this one. It gets this rank's first blocks, which
    // follow the blocks that it holds already.
    b.recv(ring_at(s.rank, have, s.size), gathered + begin[have], begin[have + more] - begin[have],
           Unit::byte);
    b.send(ring_at(s.rank, -have, s.size), gathered, begin[more], Unit::byte);
    b.end_round();
  }
  Packer unpacked(b, Packer::Way::unpack, gathered);
  if (s.in_place) unpacked.skip(incoming(s, s.rank));
  for (int i = s.in_place ? 1 : 0; i < s.size; ++i)
    unpacked.add(incoming(s, ring_at(s.rank, i, s.size)));
  unpacked.finish();
}

}  // namespace weft
