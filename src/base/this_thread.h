// This thread: whether it is inside Weft, and by which name the application called. In two bytes,
// since every wrapper reads, writes and restores it.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// Bits of ThisThread::is.
inline constexpr std::uint8_t kInside = 1;     // in a wrapper, or a thread of Weft's
inline constexpr std::uint8_t kProfiling = 2;  // called by the name PMPI_X

// Whether this thread has left its outermost call without the call's end (base/left_calls.h).
enum class Left : std::uint8_t { no, perhaps, certainly };

struct ThisThread {
  std::uint8_t is = 0;
  Left outermost = Left::no;

  bool is_inside() const { return (is & kInside) != 0; }
  bool is_untouched() const { return std::bit_cast<std::uint16_t>(*this) == 0; }
};

// In the executable's own TLS block: the library is always loaded at start.
extern constinit thread_local ThisThread this_thread __attribute__((tls_model("initial-exec")));

}  // namespace weft
