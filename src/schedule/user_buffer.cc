// Implements UserBuffer, which finds the run of elements that contains an operand. Several runs may
// contain it, since blocks to be sent may overlap.
#include "schedule/user_buffer.h"

#include <algorithm>

namespace weft {
namespace {

bool same_elements(Layout a, const Layout& b) {
  a.count = b.count;
  return a == b;
}

}  // namespace

UserBuffer::UserBuffer(const Shape& shape, Buffer buffer)
    : shape_(shape),
      outside_(buffer == Buffer::send ? "an operand outside the send buffer"
                                      : "an operand outside the receive buffer") {
  for (const Operand& run : buffer_runs(shape, buffer)) {
    runs_.push_back({run, lowest_origin(run), bytes_});
    bytes_ += payload_bytes(shape, run);
  }
  std::stable_sort(runs_.begin(), runs_.end(),
                   [](const Run& a, const Run& b) { return a.lowest < b.lowest; });
}

std::int64_t UserBuffer::lowest_origin(const Operand& operand) const {
  const std::int64_t to_last = (operand.count - 1) * layout_of(shape_, operand.unit).extent;
  return operand.at.offset + std::min<std::int64_t>(0, to_last);
}

UserBuffer::Found UserBuffer::find(const Operand& operand) const {
  auto at =
      std::upper_bound(runs_.begin(), runs_.end(), lowest_origin(operand),
                       [](std::int64_t offset, const Run& run) { return offset < run.lowest; });
  Found nearest{{}, outside_};
  for (bool first = true; at != runs_.begin(); first = false) {
    const Found found = find_in(*--at, operand);
    if (found.failure.empty()) return found;
    if (first) nearest = found;
  }
  return nearest;
}

UserBuffer::Found UserBuffer::find_in(const Run& run, const Operand& operand) const {
  const Layout& own = layout_of(shape_, run.elements.unit);
  const bool in_bytes = operand.unit == Unit::byte;
  if (in_bytes ? !own.plain : !same_elements(layout_of(shape_, operand.unit), own))
    return {{}, "an operand in a unit that its buffer is not in"};
  const std::int64_t distance = operand.at.offset - run.elements.at.offset;
  const std::int64_t step = in_bytes ? 1 : own.extent;
  if (step == 0 ? distance != 0 : distance % step != 0)
    return {{}, "an operand between two elements"};
  const std::int64_t first = step == 0 ? 0 : distance / step * (in_bytes ? 1 : own.size);
  const std::int64_t length = payload_bytes(shape_, operand);
  if (first < 0 || first + length > payload_bytes(shape_, run.elements)) return {{}, outside_};
  return {{run.begin + first, run.begin + first + length}, ""};
}

}  // namespace weft
