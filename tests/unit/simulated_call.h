// One collective call on all ranks: builds and verifies the schedules, runs them in the simulator,
// and compares the memory of every rank with the oracle's, holes and surroundings included.
#pragma once

#include <string>
#include <vector>

#include "call_layout.h"

namespace weft::test {

std::vector<Schedule> build_all(const Call& call);

struct Checked {
  std::string failure;  // empty: right
  SimOutcome outcome;
  std::vector<Schedule> schedules;
};
Checked check(const Call& call);

}  // namespace weft::test
