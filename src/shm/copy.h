// Copies data into and out of the memory that the ranks of a node share.
#pragma once

#include <cstdint>
#include <cstring>

namespace weft {

// Says which process reads the copied data next, by which the instructions of the copy are chosen.
enum class Reader : std::uint8_t { self, others };

void copy_long(void* to, const void* from, std::int64_t bytes, Reader reader);

// Copies `bytes` bytes. The buffers may overlap, as for memmove(). reader: which process reads the
// copied data next.
inline void copy_bytes(void* to, const void* from, std::int64_t bytes,
                       Reader reader = Reader::self) {
  constexpr std::int64_t kLong_bytes = 4096;
  // A single element of 8 bytes is the most frequent case; it needs no function call.
  if (bytes == sizeof(std::uint64_t))
    std::memcpy(to, from, sizeof(std::uint64_t));
  else if (bytes < kLong_bytes)
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  else
    copy_long(to, from, bytes, reader);
}

}  // namespace weft
