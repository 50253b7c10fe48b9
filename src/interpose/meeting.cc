// What is told is an allgather, whose schedule the communicator keeps.
#include "interpose/meeting.h"

#include "interpose/alone.h"
#include "interpose/runtime.h"
#include "interpose/submit.h"
#include "select/selector.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {

bool Meeting::carry_out(const Schedule& schedule, const Call& call, Kernel kernel) {
  return schedule.shape.on_one_node && schedule.node_bytes > 0
             ? carry_out_alone(schedule, call, kernel)
             : carry_out_by_messages(schedule, call, kernel);
}

bool Meeting::carry_out_alone(const Schedule& schedule, const Call& call, Kernel kernel) {
  const TempBuffer temp(schedule.temp_bytes);
  const NodeTurn turn = communicator_.memory->windows().next(Ends::in_order, schedule.fingerprint);
  Operands operands = operands_of(call, kernel, temp.data());
  operands.use(turn, schedule);
  return interpose::carry_out_alone(runtime_.progress, schedule, operands, turn);
}

bool Meeting::carry_out_by_messages(const Schedule& schedule, const Call& call, Kernel kernel) {
  const std::shared_ptr<const Schedule> not_owned(std::shared_ptr<void>(), &schedule);
  const int tag = runtime_.tag_for(communicator_.next_in_sequence());
  const auto operation = std::make_shared<CollectiveOperation>(
      id_, call, communicator_.shared_from_this(), not_owned, kernel, tag);
  if (schedule.node_bytes > 0)
    operation->take(communicator_.memory->windows().next(Ends::in_order, schedule.fingerprint));
  carry_to_its_end(runtime_, operation);
  return operation->error_code() == MPI_SUCCESS;
}

bool Meeting::exchange(const void* own, void* all, std::int64_t bytes) {
  Shape shape;
  shape.kind = Kind::allgather;
  shape.rank = communicator_.rank;
  shape.size = communicator_.size;
  shape.on_one_node = communicator_.on_one_node();
  if (!shape.on_one_node) shape.nodes = communicator_.nodes;
  shape.send.count = shape.recv.count = bytes;
  const Algorithm& algorithm = default_algorithm(shape);
  const auto schedule =
      communicator_.schedule(shape, &algorithm, [&] { return build(algorithm, shape); });
  Call call;
  call.kind = shape.kind;
  call.sendbuf = own;
  call.recvbuf = all;
  call.sendtype = call.recvtype = handles.byte;
  return carry_out(*schedule, call, nullptr);
}

}  // namespace weft::interpose
