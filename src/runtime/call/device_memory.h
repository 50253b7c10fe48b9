// The application's buffers in device memory, which the processor can neither read nor write. A
// rank that has one lets the collective work on a copy in host memory; nothing else changes, so
// that no other rank must know. Calls that are left to the MPI library keep their buffers.
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
  // Returns nullptr if the processor reaches all buffers of the call.
  static std::unique_ptr<StagedBuffers> of(const Call& call, const Shape& shape);

  bool there() const;  // there was memory for the copies
  // Returns the call with its buffers replaced by the copies.
  Call staged(Call call) const;
  // Copies in what the collective reads, and the gaps that it must keep. Must precede the
  // collective.
  bool bring_in() const;
  // Copies out what the collective has written.
  bool take_out() const;

 private:
  struct Range {
    std::int64_t begin, bytes;  // from the buffer's origin
  };
  // A buffer of the call, and its copy.
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
