// Manages a thread's table of cached calls, which is freed when the thread ends.
#include "runtime/start/cached_calls.h"

#include "base/this_thread.h"
#include "library/search.h"

namespace weft {

constinit const std::array<CachedCall, CachedCalls::kMost> CachedCalls::kNone{};
constinit thread_local CachedCalls cached_calls __attribute__((tls_model("initial-exec"))) = {};

bool CachedCall::is_left_of_call_class(const void* profiled_by) const {
  if (this_thread.is_inside() || (profiled_by && from_library(profiled_by))) return false;
  CallClass& call_class = *plan->variants->call_class;
  const auto variant = call_class.learner.variant_at_once();
  if (!variant || call_class.key.blocking) return false;
  const Plan* const made = plan->variants->plan(*variant);
  Runtime& runtime = *Runtime::active();
  if (!made || !made->declined || runtime.observing()) return false;
  return next_variant_at_once(runtime, *plan->communicator, call_class).has_value();
}

namespace {

struct AtThreadEnd {
  ~AtThreadEnd() { cached_calls.forget_all(); }
};

}  // namespace

CachedCall* CachedCalls::own() {
  if (made) return made;
  static thread_local AtThreadEnd at_thread_end;
  all = made = new CachedCall[kMost]{};
  return made;
}

void CachedCalls::forget_all() {
  delete[] made;
  made = nullptr;
  all = kNone.data();
}

}  // namespace weft
