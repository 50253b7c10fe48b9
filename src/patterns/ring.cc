// Finds the neighbours in a chain of ranks, which is a ring cut open.
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
