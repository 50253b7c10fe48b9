// SimLeaders: simulates collectives of the MPI library between leaders, which are ranks on
// different nodes with equal node rank. A collective completes on no rank before all have called
// it, which is the strictest behaviour that MPI allows; a schedule that relies on less hangs, and
// is reported.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "schedule/schedule.h"
#include "transport/sim/network.h"

namespace weft {

class SimLeaders {
 public:
  SimLeaders(const SimModel& model, const SimOperator& op) : model_(model), op_(op) {}

  // Collective: a simulated collective of the MPI library between the ranks with equal node rank.
  // These ranks call their collectives in the same order. A pointer to the object stays valid.
  struct Collective {
    const Step* step = nullptr;
    std::vector<SimData> given, got;  // input and output of each node's rank, indexed by node
    std::size_t called = 0;
    double done_us = 0;
    bool is_over() const { return called == given.size(); }
  };
  const Collective* call(const Shape& shape, const Step& step, const SimData& gives,
                         const SimData& gets, double now_us);

 private:
  void carry_out(const Collective& collective, int root);

  const SimModel& model_;
  const SimOperator& op_;
  // Number of collectives that each rank has called.
  std::map<int, std::uint32_t> called_;
  // Indexed by node rank and number of the call.
  std::map<std::pair<int, std::uint32_t>, Collective> collectives_;
};

}  // namespace weft
