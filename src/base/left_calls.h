// Calls that are left: an error handler, an attribute's callback or an operator of the
// application's throws an exception, jumps (longjmp) or ends its thread, or the thread is
// cancelled. Such a call never comes to its end. Weft treats all of these as a jump: destructors of
// its frames do not run then (personality.cc). Whatever a call must end in any case is a Duty,
// which lies outside the stack. The thread's next call fulfils the duties of one that was left; so
// does the end of the thread. Why not by destructors: a jump runs none, and a thread may be
// cancelled at any instruction, for which C++ ends the program.
#pragma once

#include <cstdint>
#include <utility>

#include "base/this_thread.h"

namespace weft {

// The frame of this thread's outermost call ends here; nullptr: a thread of Weft's.
extern constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec")));

// A call begins on a thread that is inside one, or where one may have been left. False: the one
// that it was inside was left, its duties have been fulfilled, and the thread is inside none.
bool outer_call_goes_on(const void* frame_end);

// Whether a frame of Weft's that ends there is on this thread's stack. Walks through it.
bool is_on_stack(const void* frame_end);

// The bits that the end of a call restores. frame_end: of the wrapper that the application called.
[[gnu::always_inline]] inline std::uint8_t bits_at_begin(const void* frame_end) {
  if (!this_thread.is_untouched() && outer_call_goes_on(frame_end)) [[unlikely]]
    return this_thread.is;
  outermost_call = frame_end;
  return 0;
}

// While it lives, the thread is inside no call, though it is called from inside one: code of the
// application's runs, whose calls are outermost. Duties of the calls around it are left alone.
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

  // On this thread, the last to begin is the first to end. What has been left since ends before.
  void begin();
  void end();

 protected:
  ~Duty() = default;

 private:
  friend void fulfil_duties(const Duty* until);
  virtual void fulfil() = 0;  // after its end()

  Duty* before_ = nullptr;
};

// Those of this thread that began after `until`; nullptr: all.
void fulfil_duties(const Duty* until);

// An object of a call's, or none yet, whose destructor runs also where the call is left: then
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

  // Makes the object. There must be none yet.
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
