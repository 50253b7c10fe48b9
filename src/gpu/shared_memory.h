// SharedMemory: device memory of each rank of a communicator on one node, which the other ranks
// have mapped. The caller exchanges the ranks' handles as plain bytes (mpi/one_kernel.h).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "gpu/context.h"

namespace weft::gpu {

class SharedMemory {
 public:
  // Allocates this rank's part, whose first `cleared` bytes are zero.
  static Result<std::unique_ptr<SharedMemory>> create(Context* context, int rank, int ranks,
                                                      std::size_t bytes, std::size_t cleared = 0);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Returns the handle by which the other ranks map this rank's part.
  Result<MemoryHandle> handle() const;
  // Maps the parts of all ranks. handles: theirs, in rank order.
  Result<bool> open(const std::vector<MemoryHandle>& handles);
  // Must be called if the ranks have agreed not to use the memory.
  void abandon() { parts_.clear(); }
  // Returns the address of a rank's part in this process.
  Address of(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  // Returns where the addresses of all parts lie in memory of this rank's device.
  std::byte* const* table() const { return reinterpret_cast<std::byte* const*>(own_ + table_at_); }

 private:
  SharedMemory(Context* context, int rank, int ranks);

  Context* const context_;
  const int rank_, ranks_;
  // Before its part each rank has a byte for each rank, which is non-zero if that one no longer
  // uses the memory, and then the addresses of all parts.
  const std::size_t table_at_, part_at_;
  std::size_t bytes_ = 0;  // of this rank's memory, with what is before its part
  Address own_ = 0;        // address of this rank's memory
  std::vector<Address> parts_;
};

}  // namespace weft::gpu
