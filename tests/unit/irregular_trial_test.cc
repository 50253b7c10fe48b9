// The call that is measured in place of one whose size no rank knows.
#include <gtest/gtest.h>

#include <algorithm>

#include "call_layout.h"
#include "schedule/node_edges.h"
#include "schedule/verify.h"
#include "select/candidates.h"

namespace weft::test {
namespace {

constexpr std::int64_t kMostOnTrial_bytes = 1024 * 1024;

// All ranks measure one call: each block has one length at both ends, and none but an empty one is
// empty. It is no longer than the real call, nor than a call that is measured.
void expect_one_call(const Call& call) {
  const std::vector<Shape> shapes = shapes_of(call);
  std::int64_t longest_bytes = 0, sum = 0;
  for (const Shape& shape : shapes) longest_bytes = std::max(longest_bytes, local_bytes(shape));
  std::vector<Schedule> schedules;
  for (const Shape& shape : shapes) {
    const Shape trial = shape_on_trial(shape, longest_bytes);
    sum += disagreement(trial, edges_of(trial));
    EXPECT_LE(local_bytes(trial),
              std::min(longest_bytes, kMostOnTrial_bytes + call.size * std::int64_t{4096}));
    EXPECT_EQ(local_bytes(trial) == 0, local_bytes(shape) == 0);
    EXPECT_TRUE(trial.send.plain && trial.recv.plain && !trial.in_place);
    schedules.push_back(build(*call.algorithm, trial));
  }
  EXPECT_EQ(sum, 0);
  const auto verified = verify(schedules);
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST(IrregularTrial, IsOneCallOnAllRanks) {
  for (const Kind kind : {Kind::gatherv, Kind::scatterv, Kind::alltoallv, Kind::alltoallw})
    for (const bool in_place : {false, true})
      for (const int size : {2, 4})
        for (const std::int64_t count : {1, 10, 500'000}) {
          Call call{.size = size, .root = 1, .count = count, .in_place = in_place};
          call.algorithm = find_algorithm(kind, "node-flat");
          call.type = &test_types()[0];
          SCOPED_TRACE(call.text());
          expect_one_call(call);
        }
}

}  // namespace
}  // namespace weft::test
