// Simulation: all ranks of a collective in one process, in virtual time, with real data. It runs
// the same schedules and rounds as MPI does, for any number of ranks, in milliseconds, and reports
// a run that hangs as an error.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "schedule/schedule.h"
#include "transport/sim/model.h"

namespace weft {

struct SimOutcome {
  double time_us = 0;  // until the last rank is done
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

class Simulation {
 public:
  explicit Simulation(SimModel model) : model_(model) {}

  // Runs schedule i on rank i. The receive buffers hold the result afterwards. A send ends only
  // when its receive has been posted, so that whatever could hang with MPI hangs here, and is
  // reported.
  Result<SimOutcome> run(std::span<const Schedule> schedules, std::span<const SimRank> ranks,
                         const SimOperator& op) const;

 private:
  SimModel model_;
};

}  // namespace weft
