// Tests one collective call: builds and verifies all ranks' schedules, runs them in the simulator,
// and compares each rank's memory, with its holes and surroundings, with the oracle's.
#pragma once

#include <string>
#include <vector>

#include "call_layout.h"

namespace weft::test {

std::vector<Schedule> build_all(const Call& call);

struct Checked {
  std::string failure;  // empty if the result is right
  SimOutcome outcome;
  std::vector<Schedule> schedules;
};
Checked check(const Call& call);

}  // namespace weft::test
