// Which buffers of a call are packed, and how many elements these have.
#include "runtime/packed_data.h"

#include "library/handles.h"
#include "runtime/communicators.h"
#include "runtime/shape.h"

namespace weft {
namespace {

bool has_equal_blocks(Kind kind) {
  return kind == Kind::bcast || kind == Kind::gather || kind == Kind::scatter ||
         kind == Kind::allgather || kind == Kind::alltoall;
}

int blocks_of(const Shape& shape, Buffer buffer) {
  const bool send = buffer == Buffer::send;
  switch (shape.kind) {
    case Kind::gather:
    case Kind::allgather:
      return send ? 1 : shape.size;
    case Kind::scatter:
      return send ? shape.size : 1;
    case Kind::alltoall:
      return shape.size;
    default:
      return 1;
  }
}

const void* address_of(const Call& call, Buffer buffer) {
  return buffer == Buffer::send ? call.sendbuf : call.recvbuf;
}

const Layout& side_of(const Shape& shape, Buffer buffer) {
  return buffer == Buffer::send ? shape.send : shape.recv;
}

// The one buffer of a bcast counts as the receive buffer.
bool is_packed(const Call& call, const Shape& shape, Buffer buffer) {
  const bool is_there = address_of(call, buffer) != MPI_IN_PLACE &&
                        !(shape.kind == Kind::bcast && buffer == Buffer::send);
  const Layout& side = side_of(shape, buffer);
  return is_there && !side.plain && side.count > 0;
}

std::int64_t length_of(const Call& call, const Shape& shape, Buffer buffer) {
  return is_packed(call, shape, buffer) ? side_of(shape, buffer).bytes() * blocks_of(shape, buffer)
                                        : 0;
}

// Where the bytes will lie does not matter to a shape.
Call counted_in_bytes(Call call, const Shape& shape) {
  if (is_packed(call, shape, Buffer::send)) {
    call.sendtype = handles.byte;
    call.sendcounts = shape.send.bytes();
  }
  if (is_packed(call, shape, Buffer::recv)) {
    call.recvtype = handles.byte;
    call.recvcounts = shape.recv.bytes();
  }
  if (shape.kind == Kind::bcast) {
    call.sendtype = call.recvtype;
    call.sendcounts = call.recvcounts;
  }
  return call;
}

}  // namespace

bool PackedData::is_needed(const Shape& shape) {
  return has_equal_blocks(shape.kind) && !(shape.send.plain && shape.recv.plain);
}

Shape PackedData::shape_on_bytes(const Call& call, const Shape& shape,
                                 const Communicator& communicator) {
  Shape on_bytes = shape_of(counted_in_bytes(call, shape), communicator);
  on_bytes.packed = true;
  return on_bytes;
}

PackedData::Side::Side(const Call& call, const Shape& shape, Buffer buffer)
    : length(length_of(call, shape, buffer)),
      bytes(length),
      is_read(is_input(shape, buffer)),
      is_written(is_output(shape, buffer)) {
  if (length == 0) return;
  elements = {const_cast<void*>(address_of(call, buffer)),
              side_of(shape, buffer).count * blocks_of(shape, buffer),
              buffer == Buffer::send ? call.sendtype : call.recvtype};
}

PackedData::PackedData(const Call& call, const Shape& shape, MPI_Comm comm)
    : comm_(comm), send_(call, shape, Buffer::send), recv_(call, shape, Buffer::recv) {}

Call PackedData::on_bytes(Call call) const {
  if (send_.length > 0) call.sendbuf = send_.bytes.data();
  if (recv_.length > 0) call.recvbuf = recv_.bytes.data();
  if (call.kind == Kind::bcast) call.sendbuf = call.recvbuf;
  return call;
}

int PackedData::pack() {
  int code = MPI_SUCCESS;
  for (const Side* side : {&send_, &recv_})
    if (side->length > 0 && side->is_read && code == MPI_SUCCESS)
      code = pack_elements(side->elements, side->bytes.data(), side->length, comm_);
  return code;
}

int PackedData::unpack() {
  int code = MPI_SUCCESS;
  for (const Side* side : {&send_, &recv_})
    if (side->length > 0 && side->is_written && code == MPI_SUCCESS)
      code = unpack_elements(side->bytes.data(), side->length, side->elements, comm_);
  return code;
}

std::unique_ptr<CallCopies> CallCopies::of(const Call& call, const Shape& shape,
                                           const Communicator& communicator) {
  auto made = std::make_unique<CallCopies>();
  if (shape.packed) {
    const Shape given = shape_of(call, communicator);
    if (devices_possible()) made->staged_ = StagedBuffers::of(call, given);
    made->packed_ =
        std::make_unique<PackedData>(made->on_copies(call), given, communicator.route.comm);
  } else {
    made->staged_ = StagedBuffers::of(call, shape);
  }
  return made->staged_ || made->packed_ ? std::move(made) : nullptr;
}

Call CallCopies::on_copies(Call call) const {
  if (staged_) call = staged_->staged(call);
  return packed_ ? packed_->on_bytes(call) : call;
}

void CallCopies::bring_in() {
  code_ = !staged_ || staged_->bring_in() ? MPI_SUCCESS : MPI_ERR_OTHER;
  if (packed_ && code_ == MPI_SUCCESS) code_ = packed_->pack();
}

int CallCopies::take_out() {
  if (code_ != MPI_SUCCESS) return code_;
  const int code = packed_ ? packed_->unpack() : MPI_SUCCESS;
  return code == MPI_SUCCESS && staged_ && !staged_->take_out() ? MPI_ERR_OTHER : code;
}

}  // namespace weft
