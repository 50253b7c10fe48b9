// TrialTurn: the right to try variants, which one call class of a communicator has at a time, since
// the trials of one would distort the times of another. It changes only in the order of the calls,
// which is equal on all ranks, so all ranks have the same state.
#pragma once

#include <cstdint>

namespace weft {

class Learner;

class TrialTurn {
 public:
  // Must be called for each call of a class that may want to try variants.
  void call_of(const Learner& call_class);
  bool take(const Learner& call_class);
  bool has(const Learner& call_class) const;
  void give_back(const Learner& call_class);

  // cost_ns: what trials on this communicator have cost. cost_elsewhere_ns: what trials on other
  // communicators had cost (maximum over the ranks) when the ranks last exchanged times.
  // elapsed_ns: the time from MPI_Init to that exchange.
  std::int64_t cost_ns = 0, cost_elsewhere_ns = 0, elapsed_ns = 0;

 private:
  // Number of the learner whose call class may try variants; 0 if none may.
  std::uint64_t holder_ = 0;
  // Number of calls of other classes since the class that may try was last called. If it gets
  // large, that class loses its right.
  int calls_of_others_ = 0;
};

}  // namespace weft
