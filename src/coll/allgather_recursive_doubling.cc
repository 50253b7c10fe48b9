// Allgather by recursive doubling: partners at doubling distances exchange all they have;
// log2(p) rounds. For powers of two only.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/build_functions.h"
#include "coll/own_block.h"

namespace weft {

void allgather_recursive_doubling(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t block = s.recv.count * s.recv.extent;
  for (int distance = 1; distance < s.size; distance *= 2) {
    const int peer = s.rank ^ distance;
    const int given = s.rank / distance * distance;
    const int taken = given ^ distance;
    b.recv(peer, {Buffer::recv, taken * block}, distance * s.recv.count);
    if (distance == 1) {
      b.send(peer, b.input(), input_count(b), b.input_unit());
      copy_own_block(b);
    } else {
      b.send(peer, {Buffer::recv, given * block}, distance * s.recv.count);
    }
    b.end_round();
  }
  if (s.size == 1) copy_own_block(b);
}

}  // namespace weft
