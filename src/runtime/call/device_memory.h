// StagedBuffers: copies in host memory of buffers that lie in device memory, which the processor
// can neither read nor write. The collective works on the copies; nothing else changes, so that
// other ranks need not know. Calls that are left to the MPI library keep their buffers.
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
  // Returns copies of the call's buffers in device memory; nullptr if the processor can access all
  // buffers.
  static std::unique_ptr<StagedBuffers> of(const Call& call, const Shape& shape);

  bool there() const;  // returns whether memory for the copies was available
  // Returns the call with its buffers replaced by the copies.
  Call staged(Call call) const;
  // Copies in the data that the collective reads, and gaps whose contents it must keep. Must
  // precede the collective.
  bool bring_in() const;
  // Copies out the data that the collective has written.
  bool take_out() const;

 private:
  struct Range {
    std::int64_t begin, bytes;  // in bytes; `begin` counts from the buffer's origin
  };
  // A buffer of the call and its copy.
  struct Copy {
    const DeviceDriver* driver = nullptr;  // nullptr if the processor can access the buffer
    std::byte* device = nullptr;
    std::vector<Range> runs;
    std::int64_t first = 0;  // lowest offset of all runs
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
