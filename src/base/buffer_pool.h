// BufferPool: temporary buffers of schedules, kept for reuse.
// Why: memory fresh from the kernel costs a page fault per 4 KiB, about as much as copying it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace weft {

class BufferPool {
 public:
  // 64-byte aligned; nullptr for 0 bytes or when there is no memory.
  std::byte* take(std::int64_t bytes);
  void give_back(std::byte* buffer, std::int64_t bytes);

  static BufferPool& instance();

 private:
  static constexpr std::size_t kMostKept = 8;
  static constexpr std::int64_t kMostKeptBytes = 64 << 20;

  std::mutex mutex_;  // guards the rest
  std::vector<std::pair<std::int64_t, std::byte*>> kept_;
  std::int64_t kept_bytes_ = 0;
};

}  // namespace weft
