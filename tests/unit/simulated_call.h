// One collective call on all ranks: builds and verifies the schedules, runs them in the simulator,
// and compares the memory of every rank with the oracle's, holes and surroundings included.
#pragma once

#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "oracle.h"

namespace weft::test {

struct Call {
  const Algorithm* algorithm = nullptr;
  int size = 1;
  int root = 0;
  std::int64_t count = 0;  // elements; per block for allgather and alltoall
  bool in_place = false;
  Op op = Op::sum;
  const TestType* type = nullptr;
  // If set, odd ranks use this type instead, with `odd_count` of the same payload.
  const TestType* odd_type = nullptr;
  std::int64_t odd_count = 0;

  std::string text() const;
};

Shape shape_of(const Call& call, int rank);
std::vector<Schedule> build_all(const Call& call);

struct Checked {
  std::string failure;  // empty: right
  SimOutcome outcome;
  std::vector<Schedule> schedules;
};
Checked check(const Call& call);

}  // namespace weft::test
