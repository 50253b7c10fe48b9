// Tests one collective call on all ranks: builds and verifies the schedules, runs them in the
// simulator, and compares the memory of each rank with the oracle's, including holes and
// surroundings.
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
