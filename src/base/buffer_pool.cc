// Implements the pool of temporary buffers. The pool keeps up to kMostKept returned buffers, and
// take() reuses one only if its size is equal.
#include "base/buffer_pool.h"

#include <cstdlib>

namespace weft {
namespace {

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

std::byte* BufferPool::take(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  const std::int64_t wanted = rounded(bytes);
  {
    const std::lock_guard lock(mutex_);
    auto best = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->first == wanted) best = it;
    if (best != kept_.end()) {
      std::byte* buffer = best->second;
      kept_bytes_ -= best->first;
      kept_.erase(best);
      return buffer;
    }
  }
  return static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(wanted)));
}

void BufferPool::give_back(std::byte* buffer, std::int64_t bytes) {
  if (!buffer) return;
  const std::int64_t size = rounded(bytes);
  if (size > kMostKeptBytes) {
    std::free(buffer);
    return;
  }
  const std::lock_guard lock(mutex_);
  kept_.emplace_back(size, buffer);
  kept_bytes_ += size;
  while (kept_.size() > kMostKept || kept_bytes_ > kMostKeptBytes) {
    kept_bytes_ -= kept_.front().first;
    std::free(kept_.front().second);
    kept_.erase(kept_.begin());
  }
}

// Returns the pool. The pool is never destroyed, because a progress thread may return a buffer
// while the process exits.
BufferPool& BufferPool::instance() {
  static auto* pool = new BufferPool;
  return *pool;
}

}  // namespace weft
