// TrialTurn: the sites of one communicator try out their ways one after the other, else each would
// see the other's trials in its times. Asked in the order of the calls, which is the same on all
// ranks; so are the figures that it keeps.
#pragma once

#include <cstdint>

namespace weft {

class Learner;

class TrialTurn {
 public:
  // A call of this site begins, at which it may want the turn.
  void call_of(const Learner& site);
  bool take(const Learner& site);
  bool has(const Learner& site) const;
  void give_back(const Learner& site);

  // What trials have cost on the communicator; and on others, on the rank where that is most, when
  // ranks last compared, as long after MPI_Init as elapsed_ns says.
  std::int64_t cost_ns = 0, cost_elsewhere_ns = 0, elapsed_ns = 0;

 private:
  std::uint64_t holder_ = 0;  // the learner's number; 0: nobody
  int calls_of_others_ = 0;   // since the holder's last one; it loses its turn after many
};

}  // namespace weft
