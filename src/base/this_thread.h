// ThisThread: whether the calling thread is inside Weft, and by which name (MPI_X or PMPI_X) the
// application called. It has two bytes, because every wrapper reads, writes and restores it.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// Bits of ThisThread::is.
inline constexpr std::uint8_t kInside = 1;     // the thread is in a wrapper, or belongs to Weft
inline constexpr std::uint8_t kProfiling = 2;  // the application called by the name PMPI_X

// Tells whether this thread's outermost call ended without returning (base/left_calls.h).
enum class Left : std::uint8_t { no, perhaps, certainly };

struct ThisThread {
  std::uint8_t is = 0;
  Left outermost = Left::no;

  bool is_inside() const { return (is & kInside) != 0; }
  bool is_untouched() const { return std::bit_cast<std::uint16_t>(*this) == 0; }
};

// The state of the calling thread. It lies in the executable's static TLS block, because the
// library is always loaded at program start.
extern constinit thread_local ThisThread this_thread __attribute__((tls_model("initial-exec")));

}  // namespace weft
