// An allgather of Weft's own, which a communicator keeps among its schedules.
#include "interpose/meeting.h"

#include "interpose/alone.h"
#include "select/selector.h"

namespace weft::interpose {

bool Meeting::carry_out(const Schedule& schedule, Operands operands) {
  const NodeTurn turn = communicator_.memory->windows().next(Ends::in_order, schedule.fingerprint);
  operands.use(turn, schedule);
  return carry_out_alone(progress_, schedule, operands, turn);
}

bool Meeting::exchange(const void* own, void* all, std::int64_t bytes) {
  Shape shape;
  shape.kind = Kind::allgather;
  shape.rank = communicator_.rank;
  shape.size = communicator_.size;
  shape.on_one_node = true;
  shape.send.count = shape.recv.count = bytes;
  const Algorithm& algorithm = default_algorithm(shape);
  const auto schedule =
      communicator_.schedule(shape, &algorithm, [&] { return build(algorithm, shape); });
  Operands operands;
  operands.base = {static_cast<std::byte*>(const_cast<void*>(own)), static_cast<std::byte*>(all),
                   nullptr, nullptr};
  return carry_out(*schedule, operands);
}

}  // namespace weft::interpose
