// Windows: the application's windows that other ranks may access under MPI_Win_lock, of which this
// rank is not told. With --windows passive they are transfers (transfers.h) from the call that
// makes them until MPI_Win_free, and the progress thread polls for accesses at a rate that it
// learns (engine/answer_pace.h). accesses.h has the windows that a rank opens itself.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace weft {

// Says whether windows are recorded. All calls on windows read it first.
inline std::atomic<bool> windows_are_followed{false};

// Tells how this rank has synchronised on a window: not yet (unknown), by MPI_Win_fence,
// MPI_Win_post or MPI_Win_start only (active), or also by locks (passive).
enum class WindowUse : std::uint8_t { unknown, active, passive };

class Windows {
 public:
  // Returns the object of this process.
  static Windows& own();

  void add(MPI_Win window, WindowUse use);
  void used(MPI_Win window, WindowUse use);
  // Removes the window. Returns std::nullopt if it was not recorded.
  std::optional<WindowUse> take(MPI_Win window);

  // Returns the number of windows that have been recorded so far.
  std::int64_t count() const { return count_.load(); }

 private:
  std::mutex mutex_;  // guards uses_
  std::unordered_map<MPI_Win, WindowUse> uses_;
  std::atomic<std::int64_t> count_{0};
};

// Returns whether the info says that nobody locks the window.
bool says_no_locks(MPI_Info info);

// These do the work of the inline functions below, which cost a program without the option one
// load.
void follow_window(MPI_Win window, MPI_Info info);
void note_use(MPI_Win window, WindowUse use);

// Is called when the window has been made.
inline void window_made(MPI_Win window, MPI_Info info) {
  if (windows_are_followed.load(std::memory_order_relaxed)) [[unlikely]]
    follow_window(window, info);
}
// Is called before a call by which this rank synchronises on the window.
inline void window_used(MPI_Win window, WindowUse use) {
  if (windows_are_followed.load(std::memory_order_relaxed)) [[unlikely]]
    note_use(window, use);
}
// Is called before the library's MPI_Win_free, since another window may get the handle.
std::optional<WindowUse> take_window(MPI_Win window);
// Is called when the library has not freed the window.
void give_window_back(MPI_Win window, WindowUse use);

}  // namespace weft
