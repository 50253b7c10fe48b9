// Pipelined bcast along a chain of ranks, in segments: while a rank receives a segment, it forwards
// the previous one. Long data thus take hardly longer than one transfer, however many ranks there
// are. Two ranks need no segments.
// Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007 (pipeline)
#include "coll/build_functions.h"
#include "coll/packed_bcast.h"
#include "coll/segments.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
void bcast_chain(Builder& b) {
  const Shape& s = b.shape();
  const int previous = chain_previous(s.rank, s.root, s.size);
  const int next = chain_next(s.rank, s.root, s.size);
  const Blocks blocks{s.recv.bytes(), segments(s)};
  PackedBcast data(b);
  if (previous < 0) data.pack();
  // The number of rounds by which a rank sends a segment later than it receives it. The root has
  // all segments and sends at once.
  const int behind = previous < 0 ? 0 : 1;
  for (int i = 0; i < blocks.parts + behind; ++i) {
    const int outgoing = i - behind;
    if (previous >= 0 && i < blocks.parts)
      b.recv(previous, data.at(blocks.begin(i)), blocks.length(i), Unit::byte);
    if (next >= 0 && outgoing >= 0)
      b.send(next, data.at(blocks.begin(outgoing)), blocks.length(outgoing), Unit::byte);
    b.end_round();
  }
  if (previous >= 0) data.unpack();
}

}  // namespace weft
