// The application's buffers in the memory of a device, which the processor can neither read nor
// write. A rank that has one lets the collective work on a copy in its own memory; nothing else
// changes, so that no other rank has to know. Calls that are left to the MPI library keep their
// buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/call/device_drivers.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

class StagedBuffers {
 public:
  // nullptr: the processor reaches all that the call uses.
  static std::unique_ptr<StagedBuffers> of(const Call& call, const Shape& shape);

  bool there() const;  // there was memory for the copies
  // The same call on the copies.
  Call staged(Call call) const;
  // What the collective reads, and what it leaves as it is between its elements; before it begins.
  bool bring_in() const;
  // What it has written.
  bool take_out() const;

 private:
  struct Range {
    std::int64_t begin, bytes;  // from the buffer's origin
  };
  // One of the call's buffers.
  struct Copy {
    const DeviceDriver* driver = nullptr;  // nullptr: it is the processor's
    std::byte* device = nullptr;
    std::vector<Range> runs;
    std::int64_t first = 0;  // of all runs
    std::unique_ptr<std::byte[]> memory;
    bool is_read = false, is_written = false;

    std::byte* origin() const {
      return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(memory.get()) - first);
    }
  };
  static Copy copy_of(const Call& call, const Shape& shape, Buffer buffer);

  Copy send_, recv_;
};

}  // namespace weft
