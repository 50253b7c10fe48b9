// Finds the neighbours of a rank in a ring or a chain of ranks.
#pragma once

namespace weft {

// Returns the rank at `distance` around a ring of `size` ranks; the distance may be negative.
inline int ring_at(int rank, int distance, int size) {
  const int at = (rank + distance) % size;
  return at < 0 ? at + size : at;
}

// Return the previous and the next rank in the chain that begins at rank `first` of the ring; -1 if
// there is none.
int chain_previous(int rank, int first, int size);
int chain_next(int rank, int first, int size);

}  // namespace weft
