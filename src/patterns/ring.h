// Finds the neighbours of a rank in a ring or a chain of ranks.
#pragma once

namespace weft {

// Returns the rank that is `distance` ranks after `rank` in a ring of `size` ranks; a negative
// distance counts backwards.
inline int ring_at(int rank, int distance, int size) {
  const int at = (rank + distance) % size;
  return at < 0 ? at + size : at;
}

// Return the previous and the next rank in the chain first, first + 1, …, size - 1, 0, …, first -
// 1; -1 at the end of the chain.
int chain_previous(int rank, int first, int size);
int chain_next(int rank, int first, int size);

}  // namespace weft
