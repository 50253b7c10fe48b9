// Calls that are left: an error handler, an attribute callback or an operator of the application's
// throws an exception, jumps (longjmp) or ends its thread, or the thread is cancelled. Such a call
// never returns. Weft treats all of these as a jump, in which destructors of its frames do not run
// (personality.cc). Whatever a call must undo in any case is a Duty, which lies outside the stack.
// The thread's next call fulfils the duties of one that was left; so does the end of the thread.
// Destructors would not do: a jump runs none, and a thread may be cancelled at any instruction, for
// which C++ ends the program.
#pragma once

#include <cstdint>
#include <utility>

#include "base/this_thread.h"

namespace weft {

// The end of the frame of this thread's outermost call; nullptr on Weft's threads.
extern constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec")));

// Is called when a call begins on a thread that is inside one, or where one may have been left.
// Returns false if the outer call was left: its duties are then fulfilled, and the thread is inside
// no call.
bool outer_call_is_active(const void* frame_end);

// Is called when a jump or an exception leaves frames of this thread. to: where the stack ends in
// the frame that goes on; nullptr if that is unknown. A call whose frame lies below it is left.
void leaves_frames(const void* to);

// Returns whether a frame of Weft's with this end is on this thread's stack, by walking through it.
// Generated code without unwind tables ends the walk: nothing beyond it is found.
bool is_on_stack(const void* frame_end);

// Returns the state that the end of a call restores. frame_end: that of the wrapper which the
// application called.
[[gnu::always_inline]] inline std::uint8_t bits_at_begin(const void* frame_end) {
  if (!this_thread.is_untouched() && outer_call_is_active(frame_end)) [[unlikely]]
    return this_thread.is;
  outermost_call = frame_end;
  return 0;
}

// Puts the thread outside all calls while it lives, for code of the application's that is called
// from inside one: its calls are outermost. The duties of the surrounding calls are kept.
class OutsideCalls {
 public:
  OutsideCalls();
  ~OutsideCalls();
  OutsideCalls(const OutsideCalls&) = delete;
  OutsideCalls& operator=(const OutsideCalls&) = delete;

 private:
  const ThisThread thread_;
  const void* const outermost_;
  const class Duty* const floor_;
};

class Duty {
 public:
  constexpr Duty() = default;
  Duty(const Duty&) = delete;
  Duty& operator=(const Duty&) = delete;

  // On a thread the last duty to begin ends first. Duties that were left since are ended before.
  void begin();
  void end();

 protected:
  ~Duty() = default;

 private:
  friend void fulfil_duties(const Duty* until);
  virtual void fulfil() = 0;  // after its end()

  Duty* before_ = nullptr;
};

// Fulfils this thread's duties that began after `until`; nullptr: all.
void fulfil_duties(const Duty* until);

// Holds an object of a call, or none yet, whose destructor runs even if the call is left, though
// later.
template <class T>
class Lasting {
 public:
  Lasting() = default;
  template <class First, class... More>
  explicit Lasting(First&& first, More&&... more) {
    begin(std::forward<First>(first), std::forward<More>(more)...);
  }
  ~Lasting() { end(); }
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;

  // Makes the object; there must be none yet.
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
  struct Kept final : Duty {
    template <class... Arguments>
    explicit Kept(Arguments&&... arguments) : object(std::forward<Arguments>(arguments)...) {}
    void fulfil() override { delete this; }
    T object;
  };
  Kept* kept_ = nullptr;
};

}  // namespace weft
