// One pass over the steps; nothing is needed but the stack.
#include "interpose/alone.h"

namespace weft::interpose {
namespace {

// Until the rank at this place of the node has signalled. False: it takes part in another call.
[[gnu::noinline]] bool wait_for(Progress& progress, const NodeTurn& turn, int place,
                                std::uint32_t value) {
  NodeTurn::Seen seen{};
  progress.drive_in_hand([&](int polls) {
    seen = turn.look_for(place, value, polls);
    return seen != NodeTurn::Seen::no;
  });
  return seen == NodeTurn::Seen::yes;
}

[[gnu::noinline]] void wait_to_begin(Progress& progress, const NodeTurn& turn) {
  progress.drive_in_hand([&](int) { return turn.may_begin(); });
}

bool take_steps(Progress& progress, const Schedule& schedule, const Operands& operands,
                const NodeTurn& turn) {
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::signal) {
      turn.signal(step.value);
    } else if (step.kind == StepKind::wait) {
      const int place = place_of(schedule.shape, step.peer);
      if (!wait_for(progress, turn, place, step.value)) return false;
    } else {
      operands.carry_out(step);
    }
  }
  return true;
}

}  // namespace

bool carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                     const NodeTurn& turn) {
  if (!turn.memory()) return take_steps(progress, schedule, operands, turn);
  if (!turn.may_begin()) wait_to_begin(progress, turn);
  const bool done = take_steps(progress, schedule, operands, turn);
  turn.end(done && schedule.synchronizing);
  return done;
}

}  // namespace weft::interpose
