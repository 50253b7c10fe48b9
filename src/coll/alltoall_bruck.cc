// Bruck's alltoall: ceil(log2 p) rounds for p ranks; blocks reach their destination through other
// ranks. It suits short messages. Block i in the temporary buffer still has to move i ranks
// upwards. Round k moves all blocks with bit k set in i by 2^k ranks. Bruck et al., IEEE TPDS
// 8(11), 1997
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class Bruck {
 public:
  explicit Bruck(Builder& builder)
      : b_(builder),
        size_(builder.shape().size),
        rank_(builder.shape().rank),
        bytes_(builder.shape().recv.bytes()),
        held_(builder.temp(size_ * bytes_, Unit::byte)),
        outbox_(builder.temp(size_ / 2 * bytes_, Unit::byte)),
        inbox_(builder.temp(size_ / 2 * bytes_, Unit::byte)) {}

  // Packs the blocks in the order of their destinations rank, rank + 1, …: first those up to the
  // last rank, then those from rank 0 on.
  void pack() {
    b_.copy(given(rank_, size_ - rank_), run(held_, 0, size_ - rank_));
    b_.copy(given(0, rank_), run(held_, size_ - rank_, rank_));
    b_.end_round();
  }

  void move(int distance) {
    int moved = 0;
    for_each_run(distance, [&](int first, int blocks) {
      b_.copy(run(held_, first, blocks), run(outbox_, moved, blocks));
      moved += blocks;
    });
    b_.end_round();
    b_.recv(ring_at(rank_, -distance, size_), inbox_, moved * bytes_, Unit::byte);
    b_.send(ring_at(rank_, distance, size_), outbox_, moved * bytes_, Unit::byte);
    b_.end_round();
    moved = 0;
    for_each_run(distance, [&](int first, int blocks) {
      b_.copy(run(inbox_, moved, blocks), run(held_, first, blocks));
      moved += blocks;
    });
    b_.end_round();
  }

  // Unpacks block i, which came from rank - i. If the call is in place, the rank's own block is
  // already in its place.
  void unpack() {
    for (int i = b_.shape().in_place ? 1 : 0; i < size_; ++i)
      b_.copy(run(held_, i, 1), incoming(b_.shape(), ring_at(rank_, -i, size_)));
  }

 private:
  Operand given(int first, int blocks) const {
    Operand all = outgoing(b_.shape(), first);
    all.count *= blocks;
    return all;
  }

  Operand run(Location buffer, int first, int blocks) const {
    return {buffer + first * bytes_, blocks * bytes_, Unit::byte};
  }

  // Calls visit() for each run of block numbers that have this bit set.
  template <class Visit>
  void for_each_run(int bit, Visit visit) const {
    for (int first = bit; first < size_; first += 2 * bit)
      visit(first, std::min(bit, size_ - first));
  }

  Builder& b_;
  int size_;
  int rank_;
  std::int64_t bytes_;
  Location held_;
  Location outbox_;
  Location inbox_;
};

}  // namespace

void alltoall_bruck(Builder& b) {
  if (b.shape().size == 1) return copy_own_block(b);
  Bruck bruck(b);
  bruck.pack();
  for (int distance = 1; distance < b.shape().size; distance *= 2) bruck.move(distance);
  bruck.unpack();
}

}  // namespace weft
