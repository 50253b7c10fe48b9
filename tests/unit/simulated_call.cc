// Buffers with guard zones; every byte that is not payload must stay as it was.
#include "simulated_call.h"

#include <algorithm>

#include "schedule/verify.h"
#include "transport/sim/network.h"

namespace weft::test {
namespace {

constexpr std::int64_t kGuard_bytes = 64;
constexpr std::byte kFill{0xA5};

class Memory {
 public:
  Memory(const std::vector<BlockInMemory>& some, const std::vector<BlockInMemory>& more) {
    std::int64_t end = 0;
    for (const auto* blocks : {&some, &more})
      for (const BlockInMemory& block : *blocks)
        end = std::max(end, block.offset + block.count * block.type->type.extent);
    bytes_.assign(static_cast<std::size_t>(end + 2 * kGuard_bytes), kFill);
  }

  std::byte* origin() { return bytes_.data() + kGuard_bytes; }
  void put(const BlockInMemory& block, const Payload& payload) {
    SimData{origin() + block.offset, &block.type->type, block.count}.unpack(payload.data());
  }
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct RankMemory {
  Memory send, recv, expected_send, expected_recv;
};

RankMemory make_memory(const RankLayout& layout, const std::vector<Payload>& input,
                       const std::vector<Output>& output) {
  const std::vector<BlockInMemory> none;
  Memory send(layout.given_in_recv ? none : layout.given, none);
  Memory recv(layout.given_in_recv ? layout.given : none, layout.taken);
  for (std::size_t i = 0; i < layout.given.size(); ++i)
    (layout.given_in_recv ? recv : send).put(layout.given[i], input[i]);
  Memory expected_recv = recv;
  for (std::size_t i = 0; i < output.size(); ++i)
    if (output[i]) expected_recv.put(layout.taken[i], *output[i]);
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

std::vector<Payload> make_input(const Call& call, const RankLayout& layout) {
  std::vector<Payload> blocks;
  for (const BlockInMemory& block : layout.given) {
    const auto seed = static_cast<unsigned>(layout.shape.rank * 1000) + blocks.size();
    blocks.push_back(
        make_payload(*call.type, block.units * call.count, static_cast<unsigned>(seed)));
  }
  return blocks;
}

SimRank make_rank(RankMemory& memory, const Call& call, const RankLayout& layout) {
  const bool is_odd = call.odd_type != nullptr && layout.shape.rank % 2 == 1;
  const SimType* type = &(is_odd ? call.odd_type : call.type)->type;
  SimRank rank{memory.send.origin(), memory.recv.origin(), type, type, {}};
  if (layout.shape.types.empty()) return rank;
  if (!layout.given_in_recv)
    for (const BlockInMemory& block : layout.given) rank.types.push_back(&block.type->type);
  for (const BlockInMemory& block : layout.taken) rank.types.push_back(&block.type->type);
  return rank;
}

}  // namespace

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
  std::vector<RankLayout> layouts;
  std::vector<Shape> shapes;
  Inputs inputs;
  for (int rank = 0; rank < call.size; ++rank) {
    layouts.push_back(layout_of_rank(call, rank));
    shapes.push_back(layouts.back().shape);
    inputs.push_back(make_input(call, layouts.back()));
  }
  const SimOperator op = make_operator(call.op, call.type->scalars);
  const auto outputs = expected(shapes, inputs, op);

  std::vector<RankMemory> memory;
  std::vector<SimRank> ranks;
  for (std::size_t rank = 0; rank < layouts.size(); ++rank) {
    memory.push_back(make_memory(layouts[rank], inputs[rank], outputs[rank]));
    ranks.push_back(make_rank(memory.back(), call, layouts[rank]));
  }
  auto outcome = Simulation(SimModel{}).run(checked.schedules, ranks, op);
  checked.failure = outcome ? compare(memory) : outcome.error().message;
  if (outcome) checked.outcome = *outcome;
  return checked;
}

}  // namespace weft::test
