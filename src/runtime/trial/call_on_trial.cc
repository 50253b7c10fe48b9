// Provides the buffers of a call that is measured, and its arguments for the MPI library.
#include "runtime/trial/call_on_trial.h"

#include <algorithm>
#include <cstring>

#include "library/handles.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

std::int64_t bytes_of(const Shape& shape, Buffer buffer) {
  std::int64_t end = 0;
  for (const Operand& run : buffer_runs(shape, buffer))
    end = std::max(end, touched_bytes(shape, run).end);
  return end;
}

// Returns the size in bytes of a buffer that both Weft and the MPI library can use. In a reduction
// or broadcast both buffers have the same size: the MPI library needs both buffers of a reduction
// on all ranks, and may use the other buffer for a broadcast.
std::int64_t bytes_for_both(const Shape& shape, Buffer buffer) {
  const std::int64_t bytes = bytes_of(shape, buffer);
  const bool has_one_size = reduces(shape.kind) || shape.kind == Kind::bcast;
  const Buffer other = buffer == Buffer::send ? Buffer::recv : Buffer::send;
  return has_one_size ? std::max(bytes, bytes_of(shape, other)) : bytes;
}

// Returns the MPI function of this kind to measure. It is the non-blocking one whose counts are of
// type int, which suffices for the counts of a measurement.
CallId form_of(Kind kind) {
  switch (kind) {
    case Kind::barrier:
      return CallId::Ibarrier;
    case Kind::bcast:
      return CallId::Ibcast;
    case Kind::gather:
      return CallId::Igather;
    case Kind::gatherv:
      return CallId::Igatherv;
    case Kind::scatter:
      return CallId::Iscatter;
    case Kind::scatterv:
      return CallId::Iscatterv;
    case Kind::allgather:
      return CallId::Iallgather;
    case Kind::allgatherv:
      return CallId::Iallgatherv;
    case Kind::alltoall:
      return CallId::Ialltoall;
    case Kind::alltoallv:
      return CallId::Ialltoallv;
    case Kind::alltoallw:
      return CallId::Ialltoallw;
    case Kind::reduce:
      return CallId::Ireduce;
    case Kind::allreduce:
      return CallId::Iallreduce;
    case Kind::reduce_scatter:
      return CallId::Ireduce_scatter;
    case Kind::reduce_scatter_block:
      return CallId::Ireduce_scatter_block;
    case Kind::scan:
      return CallId::Iscan;
    default:
      return CallId::Iexscan;
  }
}

std::byte* zeroed(const TempBuffer& buffer, std::int64_t bytes) {
  if (buffer.data()) std::memset(buffer.data(), 0, static_cast<std::size_t>(bytes));
  return buffer.data();
}

}  // namespace

CallOnTrial::CallOnTrial(const Shape& shape, const Call& call, std::int64_t temp_bytes)
    : send_(bytes_for_both(shape, Buffer::send)),
      recv_(bytes_for_both(shape, Buffer::recv)),
      temp_is_there_(TempBuffer(temp_bytes).there()),
      sends_(shape.send_blocks),
      recvs_(shape.recv_blocks) {
  call_.kind = call.kind;
  call_.form = form_of(call.kind);
  call_.sendbuf = zeroed(send_, bytes_for_both(shape, Buffer::send));
  call_.recvbuf = zeroed(recv_, bytes_for_both(shape, Buffer::recv));
  call_.sendtype = call_.recvtype = reduces(shape.kind) ? call.recvtype : handles.byte;
  call_.op = call.op;
  call_.root = call.root;
  count(shape);
}

CallOnTrial::Blocks::Blocks(const std::vector<Block>& blocks) : types(blocks.size(), handles.byte) {
  int place = 0;
  for (const Block& block : blocks) {
    counts.push_back(static_cast<int>(block.count));
    places.push_back(place);
    place += counts.back();
  }
}

void CallOnTrial::count(const Shape& shape) {
  call_.sendcounts = shape.send.count;
  call_.recvcounts = shape.recv.count;
  if (!sends_.counts.empty()) {
    call_.sendcounts = static_cast<const int*>(sends_.counts.data());
    call_.senddispls = static_cast<const int*>(sends_.places.data());
  }
  if (!recvs_.counts.empty()) {
    call_.recvcounts = static_cast<const int*>(recvs_.counts.data());
    call_.recvdispls = static_cast<const int*>(recvs_.places.data());
  }
  if (shape.kind != Kind::alltoallw) return;
  call_.sendtypes = sends_.types.data();
  call_.recvtypes = recvs_.types.data();
}

}  // namespace weft
