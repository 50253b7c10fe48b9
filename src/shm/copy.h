// Copies data into and out of the node's memory.
#pragma once

#include <cstdint>
#include <cstring>

namespace weft {

// Says who will read the copied data.
enum class Reader : std::uint8_t { self, others };

void copy_long(void* to, const void* from, std::int64_t bytes, Reader reader);

// Copies `bytes` bytes; reader: who will read them next. The buffers may overlap, as for memmove().
inline void copy_bytes(void* to, const void* from, std::int64_t bytes,
                       Reader reader = Reader::self) {
  constexpr std::int64_t kLong_bytes = 4096;
  // This is the most frequent case, a single element; it avoids a function call.
  if (bytes == sizeof(std::uint64_t))
    std::memcpy(to, from, sizeof(std::uint64_t));
  else if (bytes < kLong_bytes)
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  else
    copy_long(to, from, bytes, reader);
}

}  // namespace weft
