// Determines whether a call was left by a jump. A thread's outermost call is left if a jump or an
// exception leads beyond its frame. The stack is searched only if the destination of the jump is
// unknown.
#include "base/left_calls.h"

#include <pthread.h>
#include <unwind.h>

#include <algorithm>

#include "base/own_code.h"

namespace weft {

constinit thread_local ThisThread this_thread __attribute__((tls_model("initial-exec")));
constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec"))) =
    nullptr;

namespace {

constinit thread_local Duty* last_duty __attribute__((tls_model("initial-exec"))) = nullptr;

// The last duty (left_calls.h) of the calls around the innermost OutsideCalls object; nullptr if
// there is none.
constinit thread_local const Duty* floor_of_duties __attribute__((tls_model("initial-exec"))) =
    nullptr;

constinit thread_local bool awaits_end __attribute__((tls_model("initial-exec"))) = false;

// Makes the end of this thread fulfil its duties. Uses a thread-specific key, because the
// destructor of a thread_local object would also run when the process exits, which a call may
// cause.
[[gnu::noinline]] void await_thread_end() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void*) {
      awaits_end = false;
      fulfil_duties(nullptr);
    });
    return made;
  }();
  awaits_end = pthread_setspecific(key, &awaits_end) == 0;
}

}  // namespace

// Searches the stack for a frame of Weft. The end of a frame is the stack pointer of its caller at
// the call (the canonical frame address).
bool is_on_stack(const void* frame_end) {
  struct Walk {
    const void* wanted;
    bool was_in_weft = false, found = false;
  } walk{frame_end};
  const auto visit = [](_Unwind_Context* frame, void* data) {
    auto& so_far = *static_cast<Walk*>(data);
    const auto place = reinterpret_cast<const void*>(_Unwind_GetCFA(frame));
    so_far.found = so_far.was_in_weft && place == so_far.wanted;
    so_far.was_in_weft = is_own_code(reinterpret_cast<const void*>(_Unwind_GetIP(frame)));
    return so_far.found || place > so_far.wanted ? _URC_END_OF_STACK : _URC_NO_REASON;
  };
  _Unwind_Backtrace(visit, &walk);
  return walk.found;
}

void leaves_frames(const void* to) {
  if (!this_thread.is_inside()) return;
  if (!to)
    this_thread.outermost = std::max(this_thread.outermost, Left::perhaps);
  else if (to >= outermost_call)
    this_thread.outermost = Left::certainly;
}

bool outer_call_is_active(const void* frame_end) {
  if (this_thread.is_inside()) {
    if (this_thread.outermost == Left::no || !outermost_call) return true;
    if (this_thread.outermost == Left::perhaps && outermost_call > frame_end &&
        is_on_stack(outermost_call))
      return true;
  }
  this_thread = {};
  fulfil_duties(floor_of_duties);
  return false;
}

OutsideCalls::OutsideCalls()
    : thread_(std::exchange(this_thread, {})),
      outermost_(outermost_call),
      floor_(std::exchange(floor_of_duties, last_duty)) {}

OutsideCalls::~OutsideCalls() {
  this_thread = thread_;
  outermost_call = outermost_;
  floor_of_duties = floor_;
}

void Duty::begin() {
  if (!awaits_end) [[unlikely]]
    await_thread_end();
  before_ = last_duty;
  last_duty = this;
}

void Duty::end() {
  if (last_duty != this) [[unlikely]]
    fulfil_duties(this);
  last_duty = before_;
}

void fulfil_duties(const Duty* until) {
  while (last_duty && last_duty != until) {
    Duty* const left = last_duty;
    left->end();
    left->fulfil();
  }
}

}  // namespace weft
