// Exscan in log2(p) rounds for p ranks, like the scan by recursive doubling but with two sums per
// rank: the one with this rank's input is sent on, and the one without it is the result. The
// algorithm keeps the order of operands. Hillis, Steele, CACM 29(12), 1986
#include "coll/build_functions.h"

namespace weft {
namespace {

class Exscan {
 public:
  explicit Exscan(Builder& builder)
      : b_(builder),
        rank_(builder.shape().rank),
        size_(builder.shape().size),
        count_(builder.shape().recv.count),
        with_own_(builder.input()) {}

  // Copies the input of an in-place call to a temporary buffer, since the result overwrites it.
  void save_input() {
    if (rank_ > 0 && gives(1) && b_.shape().in_place) move_to_temp();
    b_.end_round();
  }

  void exchange(int distance) {
    const bool takes = rank_ >= distance;
    // In the first round, the received data become the result; later ones are added to it.
    const bool is_first = distance == 1;
    if (takes && !is_first && inbox_ == Location{}) inbox_ = b_.temp(count_, Unit::recv);
    const Location landing = is_first ? result_ : inbox_;
    if (takes) b_.recv(rank_ - distance, landing, count_);
    if (gives(distance)) b_.send(rank_ + distance, with_own_, count_);
    if (takes && gives(2 * distance) && with_own_.buffer == Buffer::send) move_to_temp();
    b_.end_round();
    if (!takes) return;
    if (!is_first) b_.reduce(landing, result_, count_);
    if (gives(2 * distance)) b_.reduce(landing, with_own_, count_);
    b_.end_round();
  }

 private:
  bool gives(int distance) const { return rank_ + distance < size_; }

  void move_to_temp() {
    const Location to = b_.temp(count_, Unit::recv);
    b_.copy(with_own_, to, count_);
    with_own_ = to;
  }

  Builder& b_;
  int rank_;
  int size_;
  std::int64_t count_;
  Location with_own_;
  Location result_{Buffer::recv, 0};
  Location inbox_;  // temporary space for received data; unset until it is needed
};

}  // namespace

void exscan_recursive_doubling(Builder& b) {
  Exscan exscan(b);
  exscan.save_input();
  for (int distance = 1; distance < b.shape().size; distance *= 2) exscan.exchange(distance);
}

}  // namespace weft
