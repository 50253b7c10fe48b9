// Carries out Weft's own collectives while persistent collectives are initialised. They are
// allgathers and allreduces, whose schedules the communicator caches.
#include "runtime/trial/internal_collective.h"

#include "engine/shared_memory_call.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/node/shared_buffers.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/submit.h"
#include "select/selector.h"

namespace weft {

bool InternalCollective::carry_out(const Schedule& schedule, const Call& call, Kernel kernel) {
  communicator_.note_use(schedule);
  InlineCall::own().hand_over();
  const bool done = try_to_carry_out(schedule, call, kernel);
  if (!done && !schedule.is_direct) communicator_.has_failed();
  return done;
}

bool InternalCollective::try_to_carry_out(const Schedule& schedule, const Call& call,
                                          Kernel kernel) {
  if (schedule.is_direct) return carry_out_directly(schedule, call, kernel);
  return schedule.shape.on_one_node && schedule.node_bytes > 0
             ? carry_out_in_shared_memory(schedule, call, kernel)
             : carry_out_by_messages(schedule, call, kernel);
}

bool InternalCollective::carry_out_in_shared_memory(const Schedule& schedule, const Call& call,
                                                    Kernel kernel) {
  const TempBuffer temp(schedule.temp_bytes);
  const NodeBufferUse turn = communicator_.memory->node_buffers().next(Ends::in_order, schedule);
  Operands operands = operands_of(call, kernel, temp.data());
  operands.use(turn, schedule);
  return weft::carry_out_in_shared_memory(runtime_.progress, schedule, operands, turn);
}

bool InternalCollective::carry_out_directly(const Schedule& schedule, const Call& call,
                                            Kernel kernel) {
  NodeMemory& memory = *communicator_.memory;
  const TempBuffer temp(schedule.temp_bytes);
  const NodeBufferUse turn = memory.node_buffers().next(Ends::in_order, schedule);
  Operands operands = operands_of(call, kernel, temp.data());
  operands.use(turn, schedule);
  operands.peers = &memory.peers();
  operands.peers->begin(
      BuffersToShow(schedule, true).in(call, memory.sharing(), ProcessMemory::Use::once));
  Execution execution(schedule, nullptr, &operands, &turn);
  Result<bool> done = false;
  runtime_.progress.drive_inline([&](int polls) {
    done = execution.advance(polls);
    return !done || *done;
  });
  return done && !execution.declined();
}

bool InternalCollective::carry_out_by_messages(const Schedule& schedule, const Call& call,
                                               Kernel kernel) {
  const std::shared_ptr<const Schedule> not_owned(std::shared_ptr<void>(), &schedule);
  const int tag = communicator_.tags.of_single(communicator_.next_in_sequence());
  const auto operation = std::make_shared<CollectiveOperation>(
      id_, call, communicator_.shared_from_this(), not_owned, kernel, tag);
  if (schedule.node_bytes > 0)
    operation->take_turn(communicator_.memory->node_buffers(), Ends::in_order, schedule);
  carry_to_its_end(runtime_, operation);
  return operation->error_code() == MPI_SUCCESS;
}

bool InternalCollective::carry_out(Kind kind, const Layout& data, Call call, Kernel kernel) {
  Shape shape;
  shape.kind = call.kind = kind;
  shape.rank = communicator_.rank;
  shape.size = communicator_.size;
  shape.on_one_node = communicator_.on_one_node();
  if (!shape.on_one_node) shape.nodes = communicator_.nodes;
  shape.send = shape.recv = data;
  const Algorithm& algorithm = default_algorithm(shape);
  const auto schedule =
      communicator_.schedule(shape, &algorithm, [&] { return build(algorithm, shape); });
  return carry_out(*schedule, call, kernel);
}

bool InternalCollective::exchange(const void* own, void* all, std::int64_t bytes) {
  Call call;
  call.sendbuf = own;
  call.recvbuf = all;
  call.sendtype = call.recvtype = handles.byte;
  Layout data;
  data.count = bytes;
  return carry_out(Kind::allgather, data, call, nullptr);
}

std::optional<InternalCollective::Words> InternalCollective::reduced(const Words& own,
                                                                     Operator by) {
  Words all{};
  Call call;
  call.sendbuf = own.data();
  call.recvbuf = all.data();
  call.sendtype = call.recvtype = handles.int64;
  constexpr std::int64_t kBytes = sizeof(std::int64_t);
  const Layout data{all.size(), kBytes, kBytes, 0, kBytes, true};
  const Kernel kernel = find_kernel(Element::int64, by);
  if (!carry_out(Kind::allreduce, data, call, kernel)) return std::nullopt;
  return all;
}

}  // namespace weft
