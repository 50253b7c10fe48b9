// Accesses tracks the application's large one-sided accesses that have no request (MPI_Put,
// MPI_Get, MPI_Accumulate, ...). From the start of an access until the call that completes it, the
// progress thread makes MPI calls in which the MPI library can progress the access. Without
// handles, accesses are counted by window and target rank. The target learns of accesses only if it
// has exposed its window by MPI_Win_post or MPI_Win_fence; its MPI library may have to take part.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "engine/progress.h"

namespace weft {

// The number of pairs of window and target rank with accesses, plus the number of exposed windows.
// Calls that complete accesses read it first.
inline std::atomic<int> accesses_under_way{0};

class Accesses {
 public:
  // Returns the only object of this process.
  static Accesses& own();

  void started(MPI_Win window, int target);
  void exposed(MPI_Win window);

  void end(MPI_Win window, int target);
  void end(MPI_Win window);  // ends the accesses to all targets
  void end_exposure(MPI_Win window);
  void end_all(MPI_Win window);

  std::int64_t count() const { return count_.load(); }  // accesses started so far

 private:
  struct OfWindow {
    std::unordered_set<int> targets;
    bool is_exposed = false;

    int count() const { return static_cast<int>(targets.size()) + is_exposed; }
  };
  enum class If : std::uint8_t { known, any };
  template <class Change>
  void change(MPI_Win window, If which, Change change, std::uint32_t started = 0,
              std::uint32_t opened = 0);

  std::mutex mutex_;  // guards windows_
  std::unordered_map<MPI_Win, OfWindow> windows_;
  std::atomic<std::int64_t> count_{0};
};

// Notes that the application has started a large access, so that the progress thread progresses it.
void access_started(MPI_Win window, int target);
// Notes that other ranks may now access the window, since MPI_Win_post has succeeded. How many
// bytes they will transfer is unknown; it is at most the size of the window. Nothing is recorded
// for windows in shared memory, where the origin moves the data alone.
void begin_exposure(MPI_Win window);
// Calls begin_exposure() for an MPI_Win_fence with this assertion. Under Open MPI it does nothing:
// after a fence a window may stay exposed until it is freed, and in all that time no second thread
// could safely be inside Open MPI because of file accesses (transfers.h).
inline void begin_fence_epoch(int assertion, MPI_Win window) {
#ifdef WEFT_FAMILY_OPENMPI
  static_cast<void>(assertion);
  static_cast<void>(window);
#else
  if ((assertion & MPI_MODE_NOSUCCEED) == 0) begin_exposure(window);
#endif
}

// Record that accesses have ended. They must be called before an MPI call that waits for the end of
// accesses, or after a call that has reported it. Accesses that have failed are dropped, too.
void end_known_accesses(MPI_Win window);
void end_known_accesses(MPI_Win window, int target);
void end_known_exposure(MPI_Win window);
void end_all_known(MPI_Win window);

inline bool has_accesses() {
  return accesses_under_way.load(std::memory_order_relaxed) > 0;
}
inline void end_accesses(MPI_Win window) {
  if (has_accesses()) [[unlikely]]
    end_known_accesses(window);
}
inline void end_accesses(MPI_Win window, int target) {
  if (has_accesses()) [[unlikely]]
    end_known_accesses(window, target);
}
inline void end_exposure(MPI_Win window) {
  if (has_accesses()) [[unlikely]]
    end_known_exposure(window);
}
// Ends all accesses to the window, and its exposure.
inline void end_all(MPI_Win window) {
  if (has_accesses()) [[unlikely]]
    end_all_known(window);
}

}  // namespace weft
