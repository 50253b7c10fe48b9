// Buffers with guard zones; every byte that is not payload must stay as it was.
#include "simulated_call.h"

#include <cstring>
#include <memory>

#include "schedule/verify.h"
#include "transport/sim/network.h"

namespace weft::test {
namespace {

constexpr std::int64_t kGuard_bytes = 64;
constexpr std::byte kFill{0xA5};

bool is_odd(const Call& call, int rank) {
  return call.odd_type != nullptr && rank % 2 == 1;
}
const TestType& type_of(const Call& call, int rank) {
  return is_odd(call, rank) ? *call.odd_type : *call.type;
}

bool rank_in_place(const Call& call, int rank) {
  return call.in_place && (call.algorithm->kind != Kind::reduce || rank == call.root);
}

class Memory {
 public:
  Memory(const SimType& type, std::int64_t elements)
      : type_(type),
        elements_(elements),
        bytes_(static_cast<std::size_t>(elements * type.extent + 2 * kGuard_bytes), kFill) {}

  std::byte* origin() { return bytes_.data() + kGuard_bytes; }
  void put(const Payload& payload, std::int64_t first_element = 0) {
    const auto element = type_.layout(1).size;
    SimData{origin() + first_element * type_.extent, &type_,
            static_cast<std::int64_t>(payload.size()) / element}
        .unpack(payload.data());
  }
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

 private:
  const SimType& type_;
  std::int64_t elements_;
  std::vector<std::byte> bytes_;
};

struct RankMemory {
  Memory send, recv, expected_send, expected_recv;
};

RankMemory make_memory(const Call& call, const Shape& shape, const Payload& input,
                       const Payload& output) {
  const SimType& type = type_of(call, shape.rank).type;
  Memory send(type, buffer_elements(shape, Buffer::send));
  Memory recv(type, buffer_elements(shape, Buffer::recv));
  const bool is_bcast = shape.kind == Kind::bcast;
  if (is_bcast ? shape.rank == shape.root : shape.in_place)
    recv.put(input, shape.kind == Kind::allgather ? shape.rank * shape.recv.count : 0);
  else if (!is_bcast && shape.kind != Kind::barrier)
    send.put(input);
  Memory expected_recv = recv;
  if (buffer_elements(shape, Buffer::recv) > 0) expected_recv.put(output);
  return {send, recv, send, expected_recv};
}

std::string compare(std::vector<RankMemory>& memory) {
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    if (!(memory[rank].send == memory[rank].expected_send))
      return "rank " + std::to_string(rank) + ": the send buffer has changed";
    if (!(memory[rank].recv == memory[rank].expected_recv))
      return "rank " + std::to_string(rank) + ": the receive buffer is wrong";
  }
  return "";
}

}  // namespace

std::string Call::text() const {
  const char* ops[] = {"sum", "max", "affine"};
  return std::string(kind_name(algorithm->kind)) + " " + algorithm->name + ", " +
         std::to_string(size) + " ranks, root " + std::to_string(root) + ", " +
         std::to_string(count) + " " + type->name + ", " + ops[static_cast<int>(op)] +
         (in_place ? ", in place" : "");
}

Shape shape_of(const Call& call, int rank) {
  Layout layout = type_of(call, rank).type.layout(is_odd(call, rank) ? call.odd_count : call.count);
  layout.plain = type_of(call, rank).plain;
  return {.kind = call.algorithm->kind,
          .rank = rank,
          .size = call.size,
          .root = call.root,
          .in_place = rank_in_place(call, rank),
          .commutative = call.op != Op::affine,
          .send = layout,
          .recv = layout};
}

std::vector<Schedule> build_all(const Call& call) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < call.size; ++rank)
    schedules.push_back(build(*call.algorithm, shape_of(call, rank)));
  return schedules;
}

Checked check(const Call& call) {
  Checked checked;
  checked.schedules = build_all(call);
  if (auto verified = verify(checked.schedules); !verified) {
    checked.failure = "verifier: " + verified.error().message;
    return checked;
  }
  const std::int64_t blocks = call.algorithm->kind == Kind::alltoall ? call.size : 1;
  std::vector<Payload> inputs;
  for (int rank = 0; rank < call.size; ++rank)
    inputs.push_back(make_payload(*call.type, call.count * blocks, static_cast<unsigned>(rank)));
  const SimOperator op = make_operator(call.op, call.type->scalars);
  const auto outputs = expected(checked.schedules[0].shape, inputs, op);

  std::vector<RankMemory> memory;
  for (int rank = 0; rank < call.size; ++rank)
    memory.push_back(make_memory(call, checked.schedules[rank].shape, inputs[rank], outputs[rank]));
  std::vector<SimRank> ranks;
  for (int rank = 0; rank < call.size; ++rank) {
    const SimType* type = &type_of(call, rank).type;
    ranks.push_back({memory[rank].send.origin(), memory[rank].recv.origin(), type, type});
  }
  auto outcome = Simulation(SimModel{}).run(checked.schedules, ranks, op);
  checked.failure = outcome ? compare(memory) : outcome.error().message;
  if (outcome) checked.outcome = *outcome;
  return checked;
}

}  // namespace weft::test
