// StagedBuffers holds copies in host memory of buffers that lie in GPU memory, where the CPU can
// neither read nor write. The collective works on the copies. Other ranks are not affected. Calls
// that Weft leaves to the MPI library keep the application's buffers.
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
  // Returns copies of those buffers of the call that lie in GPU memory; nullptr if the CPU can
  // access all of its buffers.
  static std::unique_ptr<StagedBuffers> of(const Call& call, const Shape& shape);

  bool there() const;  // returns false if there was no memory for the copies
  // Returns the call with its buffers replaced by the copies.
  Call staged(Call call) const;
  // Copies data from GPU memory: the input of the collective, and the gaps of the output, whose
  // contents must not change. It must be called before the collective. Returns false if the driver
  // refuses.
  bool bring_in() const;
  // Copies the output of the collective to GPU memory. Returns false if the driver refuses.
  bool take_out() const;

 private:
  struct Range {
    std::int64_t begin, bytes;  // in bytes; `begin` is the offset from the start of the buffer
  };
  // A buffer of the call, and its copy in host memory.
  struct Copy {
    const DeviceDriver* driver = nullptr;  // nullptr if the CPU can access the buffer
    std::byte* device = nullptr;
    std::vector<Range> runs;
    std::int64_t first = 0;  // lowest offset of all runs in bytes
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
