// Buffers with guard zones, filled with pseudo-random numbers that are always the same.
#include "call_memory.h"

#include <algorithm>
#include <cstring>

#include "transport/sim/network.h"

namespace weft::test {
namespace {

constexpr std::int64_t kGuard_bytes = 64;
constexpr std::byte kFill{0xA5};

std::vector<Payload> make_input(const Call& call, const RankLayout& layout) {
  std::vector<Payload> blocks;
  for (const BlockInMemory& block : layout.given) {
    const auto seed = static_cast<unsigned>(layout.shape.rank * 1000) + blocks.size();
    blocks.push_back(
        make_payload(*call.type, block.units * call.count, static_cast<unsigned>(seed)));
  }
  return blocks;
}

}  // namespace

GuardedBuffer::GuardedBuffer(const std::vector<BlockInMemory>& some,
                             const std::vector<BlockInMemory>& more) {
  std::int64_t end = 0;
  for (const auto* blocks : {&some, &more})
    for (const BlockInMemory& block : *blocks)
      end = std::max(end, block.offset + block.count * block.type->type.extent);
  bytes_.assign(static_cast<std::size_t>(end + 2 * kGuard_bytes), kFill);
}

std::byte* GuardedBuffer::origin() {
  return bytes_.data() + kGuard_bytes;
}

void GuardedBuffer::put(const BlockInMemory& block, const Payload& payload) {
  SimData{origin() + block.offset, &block.type->type, block.count}.unpack(payload.data());
}

// Compares all bytes at once, since the comparison of vectors of std::byte is slow.
bool GuardedBuffer::operator==(const GuardedBuffer& other) const {
  return bytes_.size() == other.bytes_.size() &&
         std::memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

CallMemory::CallMemory(const Call& call)
    : call_(call), op_(make_operator(call.op, call.type->scalars)) {
  std::vector<Shape> shapes;
  Inputs inputs;
  for (int rank = 0; rank < call.size; ++rank) {
    layouts_.push_back(layout_of_rank(call, rank));
    shapes.push_back(layouts_.back().shape);
    inputs.push_back(make_input(call, layouts_.back()));
  }
  const auto outputs = expected(shapes, inputs, op_);
  for (std::size_t rank = 0; rank < layouts_.size(); ++rank)
    memory_.push_back(make(layouts_[rank], inputs[rank], outputs[rank]));
}

CallMemory::RankMemory CallMemory::make(const RankLayout& layout, const std::vector<Payload>& input,
                                        const std::vector<Output>& output) {
  const std::vector<BlockInMemory> none;
  GuardedBuffer send(layout.given_in_recv ? none : layout.given, none);
  GuardedBuffer recv(layout.given_in_recv ? layout.given : none, layout.taken);
  for (std::size_t i = 0; i < layout.given.size(); ++i)
    (layout.given_in_recv ? recv : send).put(layout.given[i], input[i]);
  GuardedBuffer expected_recv = recv;
  for (std::size_t i = 0; i < output.size(); ++i)
    if (output[i]) expected_recv.put(layout.taken[i], *output[i]);
  return {send, recv, send, expected_recv};
}

std::vector<SimRank> CallMemory::ranks() {
  std::vector<SimRank> ranks;
  for (const RankLayout& layout : layouts_) {
    const bool is_odd = call_.odd_type != nullptr && layout.shape.rank % 2 == 1;
    const SimType* type = &(is_odd ? call_.odd_type : call_.type)->type;
    ranks.push_back({send(layout.shape.rank), recv(layout.shape.rank), type, type, {}});
    if (layout.shape.types.empty()) continue;
    if (!layout.given_in_recv)
      for (const BlockInMemory& block : layout.given)
        ranks.back().types.push_back(&block.type->type);
    for (const BlockInMemory& block : layout.taken) ranks.back().types.push_back(&block.type->type);
  }
  return ranks;
}

std::string CallMemory::difference() const {
  for (std::size_t rank = 0; rank < memory_.size(); ++rank) {
    if (!(memory_[rank].send == memory_[rank].expected_send))
      return "rank " + std::to_string(rank) + ": the send buffer has changed";
    if (!(memory_[rank].recv == memory_[rank].expected_recv))
      return "rank " + std::to_string(rank) + ": the receive buffer is wrong";
  }
  return "";
}

}  // namespace weft::test
