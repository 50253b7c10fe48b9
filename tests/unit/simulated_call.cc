// Verifies schedules before it runs them, since the simulator trusts its input.
#include "simulated_call.h"

#include "call_memory.h"
#include "schedule/verify.h"

namespace weft::test {

std::vector<Schedule> build_all(const Call& call) {
  std::vector<Schedule> schedules;
  for (const Shape& shape : shapes_of(call))
    schedules.push_back(build(*call.algorithm, shape, call.tuning));
  return schedules;
}

Checked check(const Call& call) {
  Checked checked;
  checked.schedules = build_all(call);
  if (auto verified = verify(checked.schedules); !verified) {
    checked.failure = "verifier: " + verified.error().message;
    return checked;
  }
  CallMemory memory(call);
  auto outcome = Simulation(SimModel{}).run(checked.schedules, memory.ranks(), memory.op());
  checked.failure = outcome ? memory.difference() : outcome.error().message;
  if (outcome) checked.outcome = *outcome;
  return checked;
}

}  // namespace weft::test
