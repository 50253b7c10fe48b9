// ThisThread tells whether the calling thread is inside Weft, and whether the application called
// MPI by an MPI_X or a PMPI_X name. It has only two bytes, because every wrapper reads, writes and
// restores it.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// This bit of ThisThread::is says that the thread is inside a wrapper of an MPI call, or is a
// thread of Weft.
inline constexpr std::uint8_t kInside = 1;
// This bit of ThisThread::is says that the application called PMPI_X rather than MPI_X.
inline constexpr std::uint8_t kProfiling = 2;

// Tells whether this thread's outermost MPI call was left without returning, for instance by
// longjmp() (base/left_calls.h).
enum class Left : std::uint8_t { no, perhaps, certainly };

struct ThisThread {
  std::uint8_t is = 0;
  Left outermost = Left::no;

  bool is_inside() const { return (is & kInside) != 0; }
  bool is_untouched() const { return std::bit_cast<std::uint16_t>(*this) == 0; }
};

// The state of the calling thread. It uses the fast initial-exec model of thread-local storage,
// because the library is always loaded at program start.
extern constinit thread_local ThisThread this_thread __attribute__((tls_model("initial-exec")));

}  // namespace weft
