// Finds out which buffers of a call must be packed, and how many elements they have.
#include "runtime/call/packed_data.h"

#include <algorithm>
#include <numeric>

#include "runtime/call/shape.h"

namespace weft {
namespace {

// Returns whether all data in this buffer of the call can be moved as bytes.
bool is_plain(const Shape& shape, Buffer buffer) {
  const auto runs = buffer_runs(shape, buffer);
  return std::all_of(runs.begin(), runs.end(),
                     [&](const Operand& run) { return layout_of(shape, run.unit).plain; });
}

Layout in_bytes(const Layout& layout) {
  Layout bytes;
  bytes.count = layout.bytes();
  return bytes;
}

// Sets blocks that have different counts to their place and size in packed data, where they follow
// each other without gaps.
void describe_in_bytes(const Shape& shape, Unit unit, std::vector<Block>& blocks) {
  std::int64_t offset = 0;
  for (Block& block : blocks) {
    block.count *= layout_of(shape, block.unit).size;
    block.offset = offset;
    block.unit = unit;
    offset += block.count;
  }
}

MPI_Datatype type_of(const Call& call, const Shape& shape, const Operand& operand) {
  if (operand.unit == Unit::send) return call.sendtype;
  if (operand.unit == Unit::recv) return call.recvtype;
  const auto number =
      static_cast<std::size_t>(operand.unit) - static_cast<std::size_t>(Unit::first_of_many);
  const std::size_t sends = shape.send_blocks.size();
  return number < sends ? call.sendtypes[number] : call.recvtypes[number - sends];
}

Elements elements_of(const Call& call, const Shape& shape, const Operand& operand) {
  const void* const buffer = operand.at.buffer == Buffer::send ? call.sendbuf : call.recvbuf;
  const auto address = reinterpret_cast<std::intptr_t>(buffer) + operand.at.offset;
  return {reinterpret_cast<void*>(address), operand.count, type_of(call, shape, operand)};
}

}  // namespace

bool PackedData::is_needed(const Shape& shape) {
  return !reduces(shape.kind) && !is_neighborhood(shape.kind) &&
         !(is_plain(shape, Buffer::send) && is_plain(shape, Buffer::recv));
}

Shape PackedData::shape_on_bytes(Shape shape) {
  const Shape given = shape;
  const auto pack = [&](Buffer buffer, Unit unit, Layout& layout, std::vector<Block>& blocks) {
    if (is_plain(given, buffer)) return;
    layout = in_bytes(layout);
    describe_in_bytes(given, unit, blocks);
  };
  pack(Buffer::send, Unit::send, shape.send, shape.send_blocks);
  pack(Buffer::recv, Unit::recv, shape.recv, shape.recv_blocks);
  shape.packed = true;
  return shape;
}

std::vector<PackedData::Run> PackedData::runs_to_pack(const Call& call, const Shape& shape,
                                                      Buffer buffer) {
  std::vector<Run> runs;
  if (is_plain(shape, buffer)) return runs;
  for (const Operand& run : buffer_runs(shape, buffer))
    runs.push_back({elements_of(call, shape, run), payload_bytes(shape, run)});
  return runs;
}

PackedData::Side::Side(const Call& call, const Shape& shape, Buffer buffer)
    : runs(runs_to_pack(call, shape, buffer)),
      length(
          std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                          [](std::int64_t before, const Run& run) { return before + run.length; })),
      bytes(length),
      is_read(length > 0 && is_input(shape, buffer)),
      is_written(length > 0 && is_output(shape, buffer)) {}

PackedData::PackedData(const Call& call, const Shape& shape, MPI_Comm comm)
    : comm_(comm), send_(call, shape, Buffer::send), recv_(call, shape, Buffer::recv) {}

Call PackedData::on_bytes(Call call) const {
  if (send_.length > 0) call.sendbuf = send_.bytes.data();
  if (recv_.length > 0) call.recvbuf = recv_.bytes.data();
  if (call.kind == Kind::bcast) call.sendbuf = call.recvbuf;  // MPI_Bcast has a single buffer
  return call;
}

int PackedData::pack() {
  for (const Side* side : {&send_, &recv_}) {
    if (!side->is_read) continue;
    std::byte* at = side->bytes.data();
    for (const Run& run : side->runs) {
      const int code = pack_elements(run.elements, at, run.length, comm_);
      if (code != MPI_SUCCESS) return code;
      at += run.length;
    }
  }
  return MPI_SUCCESS;
}

int PackedData::unpack() {
  for (const Side* side : {&send_, &recv_}) {
    if (!side->is_written) continue;
    const std::byte* at = side->bytes.data();
    for (const Run& run : side->runs) {
      const int code = unpack_elements(at, run.length, run.elements, comm_);
      if (code != MPI_SUCCESS) return code;
      at += run.length;
    }
  }
  return MPI_SUCCESS;
}

}  // namespace weft
