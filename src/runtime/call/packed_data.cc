// Determines which buffers of a call are packed, and counts their elements.
#include "runtime/call/packed_data.h"

#include "runtime/call/shape.h"

namespace weft {
namespace {

Layout in_bytes(const Layout& layout) {
  Layout bytes;
  bytes.count = layout.bytes();
  return bytes;
}

// Returns the elements of the buffer if they must be packed. Blocks with a single count are
// contiguous, so that one run describes them.
Operand elements_to_pack(const Shape& shape, Buffer buffer) {
  const auto runs = buffer_runs(shape, buffer);
  return runs.empty() || layout_of(shape, runs[0].unit).plain ? Operand{} : runs[0];
}

Elements elements_of(const Call& call, const Operand& operand) {
  const bool send = operand.at.buffer == Buffer::send;
  return {const_cast<void*>(send ? call.sendbuf : call.recvbuf), operand.count,
          operand.unit == Unit::send ? call.sendtype : call.recvtype};
}

}  // namespace

bool PackedData::is_needed(const Shape& shape) {
  return !reduces(shape.kind) && has_one_count(shape.kind) &&
         !(shape.send.plain && shape.recv.plain);
}

Shape PackedData::shape_on_bytes(Shape shape) {
  for (Layout* layout : {&shape.send, &shape.recv})
    if (!layout->plain) *layout = in_bytes(*layout);
  shape.packed = true;
  return shape;
}

PackedData::Side::Side(const Call& call, const Shape& shape, Buffer buffer)
    : operand(elements_to_pack(shape, buffer)),
      length(payload_bytes(shape, operand)),
      bytes(length),
      elements(elements_of(call, operand)),
      is_read(length > 0 && is_input(shape, buffer)),
      is_written(length > 0 && is_output(shape, buffer)) {}

PackedData::PackedData(const Call& call, const Shape& shape, MPI_Comm comm)
    : comm_(comm), send_(call, shape, Buffer::send), recv_(call, shape, Buffer::recv) {}

Call PackedData::on_bytes(Call call) const {
  if (send_.length > 0) call.sendbuf = send_.bytes.data();
  if (recv_.length > 0) call.recvbuf = recv_.bytes.data();
  if (call.kind == Kind::bcast) call.sendbuf = call.recvbuf;  // a bcast has a single buffer
  return call;
}

int PackedData::pack() {
  int code = MPI_SUCCESS;
  for (const Side* side : {&send_, &recv_})
    if (side->is_read && code == MPI_SUCCESS)
      code = pack_elements(side->elements, side->bytes.data(), side->length, comm_);
  return code;
}

int PackedData::unpack() {
  int code = MPI_SUCCESS;
  for (const Side* side : {&send_, &recv_})
    if (side->is_written && code == MPI_SUCCESS)
      code = unpack_elements(side->bytes.data(), side->length, side->elements, comm_);
  return code;
}

}  // namespace weft
