// TrialTurn: lets the call classes of one communicator try their variants one after the other,
// since the trials of one would distort the times of another. It is used in the order of the calls,
// which is equal on all ranks; so are its figures.
#pragma once

#include <cstdint>

namespace weft {

class Learner;

class TrialTurn {
 public:
  // Must be called when a call of this call class begins that may want the turn.
  void call_of(const Learner& call_class);
  bool take(const Learner& call_class);
  bool has(const Learner& call_class) const;
  void give_back(const Learner& call_class);

  // The cost of trials on this communicator, and on the others (maximum over the ranks), when the
  // ranks last compared; elapsed_ns: the time from MPI_Init to that comparison.
  std::int64_t cost_ns = 0, cost_elsewhere_ns = 0, elapsed_ns = 0;

 private:
  std::uint64_t holder_ = 0;  // number of the learner that has the turn; 0: none
  // Calls of other classes since the holder's last one; after many the turn is lost.
  int calls_of_others_ = 0;
};

}  // namespace weft
