// BufferPool keeps temporary buffers of collectives for reuse. New memory from the kernel costs one
// page fault per 4 KiB, which takes about as long as copying 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace weft {

class BufferPool {
 public:
  // Returns memory aligned to 64 bytes. Returns nullptr if `bytes` is 0 or no memory is available.
  std::byte* take(std::int64_t bytes);
  void give_back(std::byte* buffer, std::int64_t bytes);

  static BufferPool& instance();

 private:
  static constexpr std::size_t kMostKept = 8;
  static constexpr std::int64_t kMostKeptBytes = 64 << 20;

  std::mutex mutex_;  // guards kept_ and kept_bytes_
  std::vector<std::pair<std::int64_t, std::byte*>> kept_;
  std::int64_t kept_bytes_ = 0;
};

// Holds a buffer from the pool. The destructor returns the buffer to the pool.
class TempBuffer {
 public:
  explicit TempBuffer(std::int64_t bytes)
      : data_(bytes > 0 ? BufferPool::instance().take(bytes) : nullptr), bytes_(bytes) {}
  ~TempBuffer() {
    if (data_) BufferPool::instance().give_back(data_, bytes_);
  }
  TempBuffer(const TempBuffer&) = delete;
  TempBuffer& operator=(const TempBuffer&) = delete;

  std::byte* data() const { return data_; }
  bool there() const { return data_ || bytes_ == 0; }
  // Leaks the buffer instead of returning it to the pool. It must be called if another thread or
  // process may still write to the buffer.
  void abandon() { data_ = nullptr; }

 private:
  std::byte* data_;
  const std::int64_t bytes_;
};

}  // namespace weft
