// StagedBuffers holds copies in host memory of buffers that lie in GPU memory, where the CPU can
// neither read nor write. The collective works on the copies. Other ranks are not affected. Calls
// that Weft leaves to the MPI library keep the application's buffers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/call/device_drivers.h"
#include "runtime/call/pinned_pool.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"
#include "transport/staged_transport.h"

namespace weft {

// DeviceCopy: a buffer of a call that lies in GPU memory, and its copy in pinned host memory, which
// moves in pieces.
class DeviceCopy final : public PieceMover {
 public:
  // Returns the copy of the buffer; nullptr if the CPU can access the buffer, or the call does not
  // use it.
  static std::unique_ptr<DeviceCopy> of(const Call& call, const Shape& shape, Buffer buffer);
  ~DeviceCopy() override;
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  bool there() const { return block_.memory != nullptr; }
  // Returns the address in the copy that stands for the beginning of the buffer.
  std::byte* origin() const;
  StagedBuffer described();

  // Must be called before the copies of each start of the collective.
  void begin();
  void bring_in(int piece) override { move(Way::in, piece); }
  void take_out(int piece) override { move(Way::out, piece); }
  int brought_in() override { return ended(Way::in); }
  int taken_out() override { return ended(Way::out); }
  void wait() override;
  // Copies the whole buffer, as far as the collective reads or writes it, and waits.
  void bring_all_in();
  void take_all_out();
  bool has_failed() const { return has_failed_; }

 private:
  // A range of the buffer in bytes from its beginning.
  struct Part {
    std::int64_t begin, bytes;
  };

  DeviceCopy(const DeviceDriver& driver, std::byte* device, const Shape& shape, Buffer buffer,
             const std::vector<Operand>& runs);

  void divide(std::vector<Part> runs);
  void move(Way way, int piece);
  void move_all(Way way);
  int ended(Way way);

  std::byte* const device_;
  const Buffer buffer_;
  const bool is_read_, is_written_;
  Range bytes_;  // what the copy holds, in bytes from the beginning of the buffer
  std::int64_t piece_bytes_;
  std::vector<Part> parts_;            // what the collective uses, cut where pieces end, and sorted
  std::vector<std::size_t> parts_of_;  // by piece: its first part; one entry more at the end
  std::unique_ptr<DeviceCopies> copies_;
  PinnedPool::Block block_;
  std::array<int, kWays> sent_off_{};
  bool has_failed_ = false;
};

class StagedBuffers {
 public:
  // Returns copies of those buffers of the call that lie in GPU memory; nullptr if the CPU can
  // access all of its buffers.
  static std::unique_ptr<StagedBuffers> of(const Call& call, const Shape& shape);
  // Returns whether the call has a buffer in GPU memory.
  static bool are_needed(const Call& call, const Shape& shape);
  // Returns whether the call is long enough for copies in pieces. The copy of a short one takes no
  // longer than passing the call to another thread.
  static bool are_long(const Shape& shape);

  bool there() const;  // returns false if there was no memory for the copies
  // Returns the call with its buffers replaced by the copies.
  Call staged(Call call) const;
  std::vector<StagedBuffer> described() const;

  // Must be called before the copies of each start of the collective.
  void begin() const;
  // Copies data from GPU memory: the input of the collective, and the gaps of the output, whose
  // contents must not change. It must be called before the collective. Returns false if the driver
  // refuses.
  bool bring_in() const;
  // Copies the output of the collective to GPU memory. Returns false if the driver refuses.
  bool take_out() const;
  // Returns whether the driver has refused a copy since begin().
  bool have_failed() const;

 private:
  std::unique_ptr<DeviceCopy> send_, recv_;
};

}  // namespace weft
