// Handles MPI calls that never return. This happens if an error handler, attribute callback or
// reduction operator of the application throws an exception, calls longjmp() or ends its thread, or
// if the thread is cancelled. In all these cases the destructors of Weft's stack frames do not run
// (personality.cc).
//
// An action that a call must undo in any case is a Cleanup, an object that does not lie on the
// stack. The thread's next MPI call, or the end of the thread, runs the clean-ups of a call that
// never returned. Destructors are no alternative: longjmp() skips them, and C++ terminates the
// program if a thread is cancelled at an instruction for which the compiler expects no exception.
#pragma once

#include <cstdint>
#include <utility>

#include "base/this_thread.h"

namespace weft {

// The address of the end of the stack frame of this thread's outermost MPI call; nullptr on Weft's
// own threads.
extern constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec")));

// Returns whether this thread is still inside an outer MPI call. It is called when a call begins on
// a thread that is marked as inside a call, or whose last call may never have returned. If the
// outer call will never return, this function runs that call's clean-ups (class Cleanup), and the
// thread then counts as outside all calls.
bool outer_call_is_active(const void* frame_end);

// Notes that a longjmp() or an exception leaves stack frames of this thread. to: the stack address
// at which execution continues; nullptr if unknown. A call whose frame lies below `to` will never
// return.
void leaves_frames(const void* to);

// Returns whether a stack frame of Weft's code that ends at `frame_end` is on this thread's stack.
// It unwinds the stack, and does not find frames beyond generated code without unwind tables.
bool is_on_stack(const void* frame_end);

// Returns the value of ThisThread::is before this MPI call, which must be restored when the call
// ends. frame_end: the end of the stack frame of the wrapper that the application called.
[[gnu::always_inline]] inline std::uint8_t bits_at_begin(const void* frame_end) {
  if (!this_thread.is_untouched() && outer_call_is_active(frame_end)) [[unlikely]]
    return this_thread.is;
  outermost_call = frame_end;
  return 0;
}

// Makes this thread count as outside all MPI calls while the object lives. It is used while Weft
// runs application code, such as a callback, inside an MPI call: MPI calls in that code then count
// as outermost. The clean-ups of the surrounding calls are kept.
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

  // begin() registers this object as a clean-up of the calling thread, which runs if the current
  // MPI call never returns. end() unregisters it. Clean-ups of a thread must end in the reverse
  // order of their beginning. end() first runs clean-ups that began later and have not ended,
  // because their calls never returned.
  void begin();
  void end();

 protected:
  ~Cleanup() = default;

 private:
  friend void run_cleanups(const Cleanup* until);
  // Does the clean-up. It is called after this object has been removed from the thread's list of
  // clean-ups.
  virtual void clean_up() = 0;

  Cleanup* before_ = nullptr;
};

// Runs the clean-ups of MPI calls that never returned: those that this thread registered after
// `until`; all of them if `until` is nullptr.
void run_cleanups(const Cleanup* until);

// LongjmpSafe holds an optional object whose destructor runs even if the call that holds it never
// returns. In that case the destructor runs at the thread's next MPI call, or at the end of the
// thread.
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

  // Constructs the object. There must not be one yet.
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
