// BufferPool: temporary buffers of schedules, kept for reuse. Memory fresh from the kernel costs a
// page fault per 4 KiB, about as much as copying it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace weft {

class BufferPool {
 public:
  // Returns 64-byte aligned memory; nullptr for 0 bytes, or if no memory is available.
  std::byte* take(std::int64_t bytes);
  void give_back(std::byte* buffer, std::int64_t bytes);

  static BufferPool& instance();

 private:
  static constexpr std::size_t kMostKept = 8;
  static constexpr std::int64_t kMostKeptBytes = 64 << 20;

  std::mutex mutex_;  // guards the members below
  std::vector<std::pair<std::int64_t, std::byte*>> kept_;
  std::int64_t kept_bytes_ = 0;
};

// A buffer of the pool; it is returned when this object is destroyed.
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
  // Keeps the buffer from being reused, since another thread or process may still write to it.
  void abandon() { data_ = nullptr; }

 private:
  std::byte* data_;
  const std::int64_t bytes_;
};

}  // namespace weft
