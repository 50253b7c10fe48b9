// Windows tracks the application's windows that other ranks may access under MPI_Win_lock, which
// does not notify this rank (passive target). With --windows passive, from the creation of such a
// window until MPI_Win_free, the progress thread polls for accesses, at a rate that it learns
// (engine/answer_pace.h). For windows that a rank exposes itself see accesses.h.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace weft {

// Says whether windows are tracked. All calls on windows read it first.
inline std::atomic<bool> windows_are_followed{false};

// Says how this rank has synchronised on a window so far. unknown: not yet. active: only by
// MPI_Win_fence, MPI_Win_post or MPI_Win_start. passive: also by locks.
enum class WindowUse : std::uint8_t { unknown, active, passive };

class Windows {
 public:
  // Returns the only object of this process.
  static Windows& own();

  void add(MPI_Win window, WindowUse use);
  void used(MPI_Win window, WindowUse use);
  // Stops tracking a window, and returns how it was used; nullopt if it was not tracked.
  std::optional<WindowUse> take(MPI_Win window);

  // Returns how many windows have been tracked so far.
  std::int64_t count() const { return count_.load(); }

 private:
  std::mutex mutex_;  // guards uses_
  std::unordered_map<MPI_Win, WindowUse> uses_;
  std::atomic<std::int64_t> count_{0};
};

// Returns whether the info argument promises that nobody locks the window (no_locks).
bool says_no_locks(MPI_Info info);

// The bodies of window_made() and window_used(), for programs with --windows passive. Without that
// option a program pays for only one load.
void follow_window(MPI_Win window, MPI_Info info);
void note_use(MPI_Win window, WindowUse use);

// Begins to track a window that the application has made.
inline void window_made(MPI_Win window, MPI_Info info) {
  if (windows_are_followed.load(std::memory_order_relaxed)) [[unlikely]]
    follow_window(window, info);
}
// Notes how this rank is about to synchronise on the window.
inline void window_used(MPI_Win window, WindowUse use) {
  if (windows_are_followed.load(std::memory_order_relaxed)) [[unlikely]]
    note_use(window, use);
}
// Stops tracking a window. It must be called before the MPI library frees the window, since another
// window may then get the same handle.
std::optional<WindowUse> take_window(MPI_Win window);
// Tracks the window again. It must be called if the MPI library has refused to free the window.
void give_window_back(MPI_Win window, WindowUse use);

}  // namespace weft
