// Finds the neighbours of a rank in a chain, which is a ring of ranks cut open in front of its
// first rank.
#include "patterns/ring.h"

namespace weft {

int chain_previous(int rank, int first, int size) {
  return rank == first ? -1 : ring_at(rank, -1, size);
}

int chain_next(int rank, int first, int size) {
  const int next = ring_at(rank, 1, size);
  return next == first ? -1 : next;
}

}  // namespace weft
