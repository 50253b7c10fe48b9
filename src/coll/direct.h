// What direct schedules have in common: they begin by Builder::meet, and no rank ends before the
// others have done with its buffers.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

inline constexpr std::uint32_t kDone = 2;  // the second signal; the first was the meeting's

// Until all other ranks have got as far.
inline void part_from_all(Builder& b) {
  const Shape& s = b.shape();
  const std::uint32_t here = b.signal();
  for (int i = 1; i < s.size; ++i) b.wait((s.rank + i) % s.size, here);
}

// `rank` uses the others' buffers, they do not use each other's.
inline void part_from_one(Builder& b, int rank) {
  if (b.shape().rank == rank)
    b.signal();
  else
    b.wait(rank, kDone);
}

// The others use the buffers of `rank`, not each other's.
inline void part_from_others(Builder& b, int rank) {
  const Shape& s = b.shape();
  if (s.rank != rank) {
    b.signal();
    return;
  }
  for (int i = 1; i < s.size; ++i) b.wait((rank + i) % s.size, kDone);
}

// Reductions go in pieces that stay in a core's first cache. Elements of a piece, at most:
inline std::int64_t piece_count(const Shape& s) {
  constexpr std::int64_t kPiece_bytes = 16 * 1024;
  return std::min(s.recv.count, std::max<std::int64_t>(kPiece_bytes / s.recv.extent, 1));
}

// The pieces of elements [begin, end), as piece(offset in bytes, count).
template <class Piece>
void in_pieces(const Shape& s, std::int64_t begin, std::int64_t end, Piece piece) {
  const std::int64_t most = piece_count(s);
  for (; begin < end; begin += most) piece(begin * s.recv.extent, std::min(most, end - begin));
}

}  // namespace weft
