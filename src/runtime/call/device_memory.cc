// Finds out which of a call's buffers lie in GPU memory, and which parts of them the collective
// reads and writes.
#include "runtime/call/device_memory.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "runtime/call/shape.h"

namespace weft {
namespace {

// Returns whether the output's datatypes may have gaps between elements. The contents of gaps must
// not change.
bool has_holes(const Shape& shape) {
  return !shape.recv.plain || !std::all_of(shape.types.begin(), shape.types.end(),
                                           [](const Layout& one) { return one.plain; });
}

}  // namespace

StagedBuffers::Copy StagedBuffers::copy_of(const Call& call, const Shape& shape, Buffer buffer) {
  const void* const given = buffer == Buffer::send ? call.sendbuf : call.recvbuf;
  if (given == MPI_IN_PLACE) return {};
  auto* const origin = static_cast<std::byte*>(const_cast<void*>(given));
  Copy made;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  made.first = std::numeric_limits<std::int64_t>::max();
  for (const Operand& run : buffer_runs(shape, buffer)) {
    const weft::Range touched = touched_bytes(shape, run);
    if (run.at.buffer != buffer || touched.end <= touched.begin) continue;
    made.runs.push_back({touched.begin, touched.end - touched.begin});
    made.first = std::min(made.first, touched.begin);
    end = std::max(end, touched.end);
  }
  if (made.runs.empty()) return {};
  made.driver = driver_of(origin + made.runs[0].begin);
  if (!made.driver) return {};
  made.device = origin;
  made.memory.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(end - made.first)]);
  made.is_read = is_input(shape, buffer) || has_holes(shape);
  made.is_written = is_output(shape, buffer);
  return made;
}

std::unique_ptr<StagedBuffers> StagedBuffers::of(const Call& call, const Shape& shape) {
  StagedBuffers made;
  made.send_ = copy_of(call, shape, Buffer::send);
  made.recv_ = copy_of(call, shape, Buffer::recv);
  if (!made.recv_.device && !made.send_.device) return nullptr;
  return std::make_unique<StagedBuffers>(std::move(made));
}

bool StagedBuffers::there() const {
  return (!send_.device || send_.memory) && (!recv_.device || recv_.memory);
}

Call StagedBuffers::staged(Call call) const {
  if (send_.device) call.sendbuf = send_.origin();
  if (recv_.device) call.recvbuf = recv_.origin();
  if (call.kind == Kind::bcast) call.sendbuf = call.recvbuf;  // MPI_Bcast has a single buffer
  return call;
}

bool StagedBuffers::bring_in() const {
  bool copied = true;
  for (const Copy* one : {&send_, &recv_})
    for (const Range& run : one->is_read ? one->runs : std::vector<Range>())
      copied = copied &&
               one->driver->bring_in(one->origin() + run.begin, one->device + run.begin, run.bytes);
  return copied;
}

bool StagedBuffers::take_out() const {
  bool copied = true;
  for (const Copy* one : {&send_, &recv_})
    for (const Range& run : one->is_written ? one->runs : std::vector<Range>())
      copied = copied &&
               one->driver->take_out(one->device + run.begin, one->origin() + run.begin, run.bytes);
  return copied;
}

}  // namespace weft
