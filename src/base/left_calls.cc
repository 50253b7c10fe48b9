// Finds out whether an MPI call was left by longjmp() or an exception. A thread's outermost call is
// left if execution continues beyond its stack frame. The stack is searched only if it is unknown
// where execution continues.
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

constinit thread_local Cleanup* last_cleanup __attribute__((tls_model("initial-exec"))) = nullptr;

// The newest clean-up action that must be kept while Weft runs application code inside an MPI call
// (class OutsideCalls): it belongs to the surrounding MPI calls. nullptr if there is none.
constinit thread_local const Cleanup* floor_of_cleanups __attribute__((tls_model("initial-exec"))) =
    nullptr;

constinit thread_local bool awaits_end __attribute__((tls_model("initial-exec"))) = false;

// Makes the end of this thread run the clean-ups of MPI calls that never returned (class Cleanup).
// It uses a thread-specific key: the destructor of a thread_local object would also run when the
// process exits, and exit() may be called inside an MPI call.
[[gnu::noinline]] void await_thread_end() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void*) {
      awaits_end = false;
      run_cleanups(nullptr);
    });
    return made;
  }();
  awaits_end = pthread_setspecific(key, &awaits_end) == 0;
}

}  // namespace

// Searches the stack for a frame of Weft's code that ends at `frame_end`. The end of a frame is the
// stack pointer before the call of its function (the canonical frame address).
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
  run_cleanups(floor_of_cleanups);
  return false;
}

OutsideCalls::OutsideCalls()
    : thread_(std::exchange(this_thread, {})),
      outermost_(outermost_call),
      floor_(std::exchange(floor_of_cleanups, last_cleanup)) {}

OutsideCalls::~OutsideCalls() {
  this_thread = thread_;
  outermost_call = outermost_;
  floor_of_cleanups = floor_;
}

void Cleanup::begin() {
  if (!awaits_end) [[unlikely]]
    await_thread_end();
  before_ = last_cleanup;
  last_cleanup = this;
}

void Cleanup::end() {
  if (last_cleanup != this) [[unlikely]]
    run_cleanups(this);
  last_cleanup = before_;
}

void run_cleanups(const Cleanup* until) {
  while (last_cleanup && last_cleanup != until) {
    Cleanup* const left = last_cleanup;
    left->end();
    left->clean_up();
  }
}

}  // namespace weft
