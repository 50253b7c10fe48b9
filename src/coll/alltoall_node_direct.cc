// Single-copy alltoall for ranks that can access each other's buffers: each rank copies its blocks
// directly. With p ranks and blocks of n bytes, each rank copies p n bytes. If the call is in
// place, one rank of each pair exchanges the pair's two blocks, piece by piece.
// Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

constexpr std::int64_t kPiece_bytes = 16 * 1024;

// Returns whether `rank` rather than `other` exchanges the two blocks of this pair. To balance the
// work, this is the lower rank in half of the pairs.
bool exchanges_with(int rank, int other) {
  return (rank < other) == ((rank + other) % 2 == 0);
}

void exchange_in_place(Builder& b, std::int64_t bytes) {
  const Shape& s = b.shape();
  const Location between = b.temp(std::min(bytes, kPiece_bytes), Unit::byte);
  for (int i = 1; i < s.size; ++i) {
    const int other = ring_at(s.rank, i, s.size);
    if (!exchanges_with(s.rank, other)) continue;
    for (std::int64_t begin = 0; begin < bytes; begin += kPiece_bytes) {
      const std::int64_t length = std::min(kPiece_bytes, bytes - begin);
      const Location own = b.result_of(s.rank) + (other * bytes + begin);
      const Location others = b.result_of(other) + (s.rank * bytes + begin);
      b.copy(own, between, length, Unit::byte);
      b.copy(others, own, length, Unit::byte);
      b.copy(between, others, length, Unit::byte);
    }
  }
}

}  // namespace

void alltoall_node_direct(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (s.size == 1) return copy_own_block(b);
  if (bytes == 0) return;
  b.meet(s.in_place ? Builder::Shows::result : Builder::Shows::input);
  if (s.in_place) {
    exchange_in_place(b, bytes);
  } else {
    for (int i = 1; i < s.size; ++i) {
      const int rank = ring_at(s.rank, i, s.size);
      b.copy({b.input_of(rank) + s.rank * bytes, bytes, Unit::byte}, incoming(s, rank));
    }
    copy_own_block(b);
  }
  part_from_all(b);
}

}  // namespace weft
