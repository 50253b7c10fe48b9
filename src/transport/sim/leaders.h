// SimLeaders: the MPI library's collectives between leaders, in the simulator.
// Why strict: a collective is over for none of its ranks until all have called it, the most that a
// library may ask for; so what relies on less hangs, and is reported.
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

  // The ranks with one node rank call their collectives in order. The result stays valid.
  struct Collective {
    const Step* step = nullptr;
    std::vector<SimData> given, got;  // by node
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
  std::map<int, std::uint32_t> called_;                              // by rank
  std::map<std::pair<int, std::uint32_t>, Collective> collectives_;  // by node rank and number
};

}  // namespace weft
