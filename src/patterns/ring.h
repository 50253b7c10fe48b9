// Ring and chain: the ranks in a circle or a line.
#pragma once

namespace weft {

// `rank + distance` around a circle of `size`; the distance may be negative.
inline int ring_at(int rank, int distance, int size) {
  const int at = (rank + distance) % size;
  return at < 0 ? at + size : at;
}

// Neighbours on the line that begins at rank `first` of a circle; -1 at its ends.
int chain_previous(int rank, int first, int size);
int chain_next(int rank, int first, int size);

}  // namespace weft
