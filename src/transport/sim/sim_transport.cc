// Implements SimTransport: carries out the steps of a rank on real memory with a virtual clock.
#include "transport/sim/sim_transport.h"

namespace weft {

SimTransport::SimTransport(SimNetwork& network, SimLeaders& leaders, const SimModel& model,
                           int operation, const Schedule& schedule, std::span<const SimRank> ranks,
                           const SimOperator& op, const NodeBufferUse& turn)
    : network_(network),
      leaders_(leaders),
      model_(model),
      operation_(operation),
      shape_(schedule.shape),
      ranks_(ranks),
      buffers_(ranks[static_cast<std::size_t>(schedule.shape.rank)]),
      op_(op),
      temp_(static_cast<std::size_t>(schedule.temp_bytes)) {
  own_.base = {const_cast<std::byte*>(buffers_.send), buffers_.recv, temp_.data()};
  own_.use(turn, schedule);
}

std::byte* SimTransport::address(const Location& at) const {
  if (at.is_own()) return own_.address(at);
  const SimRank& of = ranks_[static_cast<std::size_t>(at.rank)];
  return (at.buffer == Buffer::send ? const_cast<std::byte*>(of.input) : of.recv) + at.offset;
}

SimData SimTransport::data(const Operand& operand) {
  // The send buffer is not const here. The verifier of schedules ensures that no step writes to it.
  if (operand.count == 0) return {};
  return {address(operand.at), type(operand.unit), operand.count};
}

const SimType* SimTransport::type(Unit unit) const {
  switch (unit) {
    case Unit::send:
      return buffers_.send_type;
    case Unit::recv:
      return buffers_.recv_type;
    case Unit::byte:
      return nullptr;
    default:
      return buffers_
          .types[static_cast<std::size_t>(unit) - static_cast<std::size_t>(Unit::first_of_many)];
  }
}

void SimTransport::reduce(const Step& step) {
  const SimData in = data(step.first);
  const std::int64_t bytes = in.payload_bytes();
  packed_.resize(static_cast<std::size_t>(bytes));
  inout_packed_.resize(static_cast<std::size_t>(bytes));
  in.pack(packed_.data());
  data(step.second).pack(inout_packed_.data());
  op_(packed_.data(), inout_packed_.data(), bytes);
  data(result_of(step)).unpack(inout_packed_.data());
  network_.work(shape_.rank, static_cast<double>(bytes) * model_.reduce_us_per_byte);
}

void SimTransport::copy(const Step& step) {
  const SimData from = data(step.first);
  packed_.resize(static_cast<std::size_t>(from.payload_bytes()));
  from.pack(packed_.data());
  data(step.second).unpack(packed_.data());
  network_.work(shape_.rank, static_cast<double>(packed_.size()) * model_.copy_us_per_byte);
}

Result<bool> SimTransport::start(const Step& step) {
  switch (step.kind) {
    case StepKind::send:
      posted_.push_back(network_.post_send(operation_, shape_.rank, step.peer, data(step.first)));
      return true;
    case StepKind::recv:
      posted_.push_back(network_.post_recv(operation_, step.peer, shape_.rank, data(step.first)));
      return true;
    case StepKind::leaders:
      called_.push_back(leaders_.call(shape_, step, data(step.first), data(step.second),
                                      network_.clock_us(shape_.rank)));
      return true;
    case StepKind::reduce:
      reduce(step);
      return true;
    case StepKind::copy:
      copy(step);
      return true;
    default:
      return Error{"the simulator has no MPI library to hand a whole collective to"};
  }
}

Result<bool> SimTransport::test() {
  for (SimNetwork::Ticket ticket : posted_) {
    if (!network_.is_matched(ticket)) return false;
    if (network_.is_truncated(ticket))
      return Error{"rank " + std::to_string(shape_.rank) +
                   " receives a message of another size than was sent"};
  }
  for (const SimLeaders::Collective* collective : called_)
    if (!collective->is_over()) return false;
  for (SimNetwork::Ticket ticket : posted_)
    network_.wait_until(shape_.rank, network_.done_us(ticket));
  for (const SimLeaders::Collective* collective : called_)
    network_.wait_until(shape_.rank, collective->done_us);
  posted_.clear();
  called_.clear();
  return true;
}

}  // namespace weft
