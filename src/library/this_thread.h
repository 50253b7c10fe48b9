// This thread: whether it is inside Weft, and by which name the application called. In one byte,
// since every wrapper writes and restores it.
#pragma once

#include <cstdint>

namespace weft {

// Bits of this_thread.
inline constexpr std::uint8_t kInside = 1;     // in a wrapper, or a thread of Weft's
inline constexpr std::uint8_t kProfiling = 2;  // called by the name PMPI_X

// In the executable's own TLS block: the library is always loaded at start.
extern constinit thread_local std::uint8_t this_thread __attribute__((tls_model("initial-exec")));

}  // namespace weft
