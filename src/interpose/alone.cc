// Nothing is needed but the stack.
#include "interpose/alone.h"

namespace weft::interpose {

Result<bool> carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                             const NodeTurn& turn) {
  Execution execution(schedule, nullptr, &operands, &turn);
  Result<bool> done = false;
  progress.drive_in_hand([&](int polls) {
    done = execution.advance(polls);
    return !done || *done;
  });
  return done;
}

}  // namespace weft::interpose
