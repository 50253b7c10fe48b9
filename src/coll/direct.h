// Helpers for direct schedules: these begin with Builder::meet, and no rank ends before the others
// have finished using its buffers.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

inline constexpr std::uint32_t kDone =
    2;  // the second signal; the first was the internal collective's

// Waits until all other ranks have come to this point.
inline void part_from_all(Builder& b) {
  const Shape& s = b.shape();
  const std::uint32_t here = b.signal();
  for (int i = 1; i < s.size; ++i) b.wait((s.rank + i) % s.size, here);
}

// Ends a schedule in which `rank` uses the others' buffers, and these do not use each other's.
inline void part_from_one(Builder& b, int rank) {
  if (b.shape().rank == rank)
    b.signal();
  else
    b.wait(rank, kDone);
}

// Ends a schedule in which the others use the buffers of `rank`, and not each other's.
inline void part_from_others(Builder& b, int rank) {
  const Shape& s = b.shape();
  if (s.rank != rank) {
    b.signal();
    return;
  }
  for (int i = 1; i < s.size; ++i) b.wait((rank + i) % s.size, kDone);
}

// Reductions are divided into pieces that stay in a core's first-level cache. Returns the elements
// of a piece.
inline std::int64_t piece_count(const Shape& s) {
  constexpr std::int64_t kPiece_bytes = 16 * 1024;
  return std::min(s.recv.count, std::max<std::int64_t>(kPiece_bytes / s.recv.extent, 1));
}

// Calls piece(offset in bytes, count) for each piece of elements [begin, end).
template <class Piece>
void in_pieces(const Shape& s, std::int64_t begin, std::int64_t end, Piece piece) {
  const std::int64_t most = piece_count(s);
  for (; begin < end; begin += most) piece(begin * s.recv.extent, std::min(most, end - begin));
}

}  // namespace weft
