// TrialTurn: the right of one call class of a communicator to try its variants, which the call
// classes get one after the other, since the trials of one would distort the times of another. It
// changes only in the order of the calls, which is equal on all ranks; so all ranks have the same
// figures.
#pragma once

#include <cstdint>

namespace weft {

class Learner;

class TrialTurn {
 public:
  // Must be called when a call of this call class begins and the class may want to try variants.
  void call_of(const Learner& call_class);
  bool take(const Learner& call_class);
  bool has(const Learner& call_class) const;
  void give_back(const Learner& call_class);

  // The cost of trials on this communicator, and on the others (maximum over the ranks), when the
  // ranks last compared; elapsed_ns: the time from MPI_Init to that comparison.
  std::int64_t cost_ns = 0, cost_elsewhere_ns = 0, elapsed_ns = 0;

 private:
  std::uint64_t holder_ = 0;  // number of the learner whose class may try variants; 0: none
  // Calls of other classes since the last call of the one that may try; after many it loses that
  // right.
  int calls_of_others_ = 0;
};

}  // namespace weft
