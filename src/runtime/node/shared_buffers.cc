// Finds out how other processes can access the application's buffers. A buffer in shared memory is
// accessible if all bytes that the collective uses lie in one shared range. Other buffers may be
// attached by XPMEM, or copied by the kernel.
#include "runtime/node/shared_buffers.h"

#include <algorithm>

#include "transport/transport.h"

namespace weft {

BuffersToShow::BuffersToShow(const Schedule& direct, bool by_kernel)
    : plain_(needs_no_messages(direct, true)), by_kernel_(by_kernel && one_copy()) {
  const Shape& shape = direct.shape;
  if (direct.shows_input) input_ = part(shape, outgoing(shape, 0).at);
  if (direct.shows_result) result_ = part(shape, {Buffer::recv, 0});
  for (const Part* used : {&input_, &result_})
    for (const Operand& run :
         used->is_used ? buffer_runs(shape, used->origin.buffer) : std::vector<Operand>{})
      plain_ = plain_ && layout_of(shape, run.unit).plain;
}

BuffersToShow::Part BuffersToShow::part(const Shape& shape, const Location& origin) {
  Part part{false, origin, {}};
  for (const Operand& run : buffer_runs(shape, origin.buffer)) {
    const Range range = touched_bytes(shape, run);
    part.bytes = part.is_used ? Range{std::min(part.bytes.begin, range.begin),
                                      std::max(part.bytes.end, range.end)}
                              : range;
    part.is_used = true;
  }
  return part;
}

PublishedBuffers BuffersToShow::in(const Call& call, std::span<const int> all_ranks,
                                   ProcessMemory::Use use) const {
  return {shown(input_, call, all_ranks, use), shown(result_, call, all_ranks, use)};
}

// Returns the description of one part of a buffer for the other ranks. Data with gaps are described
// as not accessible, and the ranks then do not use buffers in place.
ShownBuffer BuffersToShow::shown(const Part& part, const Call& call, std::span<const int> all_ranks,
                                 ProcessMemory::Use use) const {
  if (!plain_) return {ShownBuffer::kNotShared, 0};
  if (!part.is_used) return {};
  const void* const buffer = part.origin.buffer == Buffer::send ? call.sendbuf : call.recvbuf;
  const auto* begin = static_cast<const std::byte*>(buffer) + part.bytes.begin;
  const std::int64_t bytes = part.bytes.end - part.bytes.begin;
  const std::int64_t to_origin = part.origin.offset - part.bytes.begin;
  const std::byte* const origin = begin + to_origin;
  ShownBuffer shown = shared_ranges().shown(begin, bytes, all_ranks, to_origin);
  if (shown.memory == ShownBuffer::kNotShared && process_memory())
    shown = process_memory()->shown(begin, bytes, origin, use);
  if (shown.memory == ShownBuffer::kNotShared && by_kernel_)
    shown = one_copy()->shown(begin, bytes, origin, all_ranks);
  return shown;
}

}  // namespace weft
