// Simulation: runs all ranks of a collective in a single process, in virtual time, with real data.
// It runs the same schedules and rounds as over MPI, for any number of ranks, within milliseconds.
// A run that hangs is reported as an error.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "schedule/schedule.h"
#include "transport/sim/model.h"

namespace weft {

struct SimOutcome {
  double time_us = 0;  // virtual time in microseconds until the last rank has completed
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

class Simulation {
 public:
  explicit Simulation(SimModel model) : model_(model) {}

  // Runs schedule i on rank i; afterwards the receive buffers hold the result. A send completes
  // only when its receive has been posted, so that every schedule that could hang with MPI hangs
  // here. Returns an error if the ranks hang.
  Result<SimOutcome> run(std::span<const Schedule> schedules, std::span<const SimRank> ranks,
                         const SimOperator& op) const;

 private:
  SimModel model_;
};

}  // namespace weft
