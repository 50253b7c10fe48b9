// Functions for direct schedules, in which ranks use each other's buffers in place. Such a schedule
// begins with Builder::meet, and no rank leaves it before the others have finished using its
// buffers.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

// The value of a rank's counter when it has finished using other ranks' buffers. Builder::meet
// raises the counter to 1.
inline constexpr std::uint32_t kDone = 2;

// Ends a schedule in which all ranks use each other's buffers: waits until all others have reached
// this point.
inline void part_from_all(Builder& b) {
  const Shape& s = b.shape();
  const std::uint32_t here = b.signal();
  for (int i = 1; i < s.size; ++i) b.wait((s.rank + i) % s.size, here);
}

// Ends a schedule in which only `rank` uses other ranks' buffers: all others wait until it has
// finished.
inline void part_from_one(Builder& b, int rank) {
  if (b.shape().rank == rank)
    b.signal();
  else
    b.wait(rank, kDone);
}

// Ends a schedule in which the others use only the buffers of `rank`: it waits until all have
// finished.
inline void part_from_others(Builder& b, int rank) {
  const Shape& s = b.shape();
  if (s.rank != rank) {
    b.signal();
    return;
  }
  for (int i = 1; i < s.size; ++i) b.wait((rank + i) % s.size, kDone);
}

// Returns the number of elements that a reduction handles at a time, so that they stay in a core's
// first-level cache.
inline std::int64_t piece_count(const Shape& s) {
  constexpr std::int64_t kPiece_bytes = 16 * 1024;
  return std::min(s.recv.count, std::max<std::int64_t>(kPiece_bytes / s.recv.extent, 1));
}

// Divides the elements begin, …, end - 1 into pieces, and calls piece(offset in bytes, number of
// elements) for each.
template <class Piece>
void in_pieces(const Shape& s, std::int64_t begin, std::int64_t end, Piece piece) {
  const std::int64_t most = piece_count(s);
  for (; begin < end; begin += most) piece(begin * s.recv.extent, std::min(most, end - begin));
}

}  // namespace weft
