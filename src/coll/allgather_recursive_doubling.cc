// Allgather by recursive doubling: partners at doubling distances exchange all blocks they have, in
// log2(p) rounds for p ranks. The number of ranks must be a power of two.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/build_functions.h"
#include "coll/own_block.h"

namespace weft {

void allgather_recursive_doubling(Builder& b) {
  const Shape& s = b.shape();
  const auto run = [&](int first, int blocks) {
    Operand all = incoming(s, first);
    all.count *= blocks;
    return all;
  };
  for (int distance = 1; distance < s.size; distance *= 2) {
    const int peer = s.rank ^ distance;
    const int given = s.rank / distance * distance;
    b.recv(peer, run(given ^ distance, distance));
    b.send(peer, distance == 1 ? outgoing(s, s.rank) : run(given, distance));
    if (distance == 1) copy_own_block(b);
    b.end_round();
  }
  if (s.size == 1) copy_own_block(b);
}

}  // namespace weft
