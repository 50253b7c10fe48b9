// Handles calls that never return, because an error handler, attribute callback or reduction
// operator of the application throws an exception, jumps (longjmp) or ends its thread, or because
// the thread is cancelled. Weft treats all of these as a jump, in which the destructors of its
// frames do not run (personality.cc). An action that a call must undo in any case is a Cleanup, an
// object that does not lie on the stack. The next call of the thread, or the end of the thread,
// runs the clean-ups of a call that has been left. Destructors would not do: a jump runs none, and
// a thread may be cancelled at any instruction, for which C++ ends the program.
#pragma once

#include <cstdint>
#include <utility>

#include "base/this_thread.h"

namespace weft {

// The end of the stack frame of this thread's outermost MPI call; nullptr on Weft's threads.
extern constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec")));

// Returns whether the thread is still inside the outer call. Is called when a call begins on a
// thread that is inside a call, or whose last call may never have returned. If the outer call has
// been left, runs its clean-ups; the thread then counts as outside all calls.
bool outer_call_is_active(const void* frame_end);

// Notes that a jump or an exception leaves frames of this thread. to: the stack address at which
// execution continues; nullptr if unknown. A call whose frame lies below it will not return.
void leaves_frames(const void* to);

// Returns whether a frame of Weft with this end is on this thread's stack, by unwinding it.
// Generated code without unwind tables ends the search; frames beyond it are not found.
bool is_on_stack(const void* frame_end);

// Returns the thread's state (ThisThread::is) before this call, which the end of the call restores.
// frame_end: the end of the frame of the wrapper that the application called.
[[gnu::always_inline]] inline std::uint8_t bits_at_begin(const void* frame_end) {
  if (!this_thread.is_untouched() && outer_call_is_active(frame_end)) [[unlikely]]
    return this_thread.is;
  outermost_call = frame_end;
  return 0;
}

// Makes the thread count as outside all calls while this object lives, for application code that is
// called from inside a call: MPI calls in it are outermost. The clean-ups of the surrounding calls
// are kept.
class OutsideCalls {
 public:
  OutsideCalls();
  ~OutsideCalls();
  OutsideCalls(const OutsideCalls&) = delete;
  OutsideCalls& operator=(const OutsideCalls&) = delete;

 private:
  const ThisThread thread_;
  const void* const outermost_;
  const class Cleanup* const floor_;
};

class Cleanup {
 public:
  constexpr Cleanup() = default;
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;

  // begin() makes this object a clean-up of the calling thread, which runs unless end() is
  // called. Clean-ups of a thread must end in the reverse order of their beginning. end() first
  // runs later clean-ups that have not ended, because their calls have been left.
  void begin();
  void end();

 protected:
  ~Cleanup() = default;

 private:
  friend void run_cleanups(const Cleanup* until);
  virtual void clean_up() = 0;  // does the work; is called once the clean-up has been
                                // removed from the list

  Cleanup* before_ = nullptr;
};

// Runs the clean-ups of this thread that began after `until`; all of them if `until` is nullptr.
void run_cleanups(const Cleanup* until);

// LongjmpSafe: holds an optional object. Its destructor runs even if the call that holds it never
// returns, though later: at the next call of the thread, or at the thread's end.
template <class T>
class LongjmpSafe {
 public:
  LongjmpSafe() = default;
  template <class First, class... More>
  explicit LongjmpSafe(First&& first, More&&... more) {
    begin(std::forward<First>(first), std::forward<More>(more)...);
  }
  ~LongjmpSafe() { end(); }
  LongjmpSafe(const LongjmpSafe&) = delete;
  LongjmpSafe& operator=(const LongjmpSafe&) = delete;

  // Constructs the object; there must be none yet.
  template <class... Arguments>
  void begin(Arguments&&... arguments) {
    kept_ = new Kept(std::forward<Arguments>(arguments)...);
    kept_->begin();
  }
  void end() {
    if (!kept_) return;
    kept_->end();
    delete std::exchange(kept_, nullptr);
  }

  explicit operator bool() const { return kept_ != nullptr; }
  T* operator->() { return &kept_->object; }

 private:
  struct Kept final : Cleanup {
    template <class... Arguments>
    explicit Kept(Arguments&&... arguments) : object(std::forward<Arguments>(arguments)...) {}
    void clean_up() override { delete this; }
    T object;
  };
  Kept* kept_ = nullptr;
};

}  // namespace weft
