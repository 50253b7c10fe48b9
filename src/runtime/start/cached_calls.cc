// Manages a thread's table of cached calls, which is freed when the thread ends.
#include "runtime/start/cached_calls.h"

#include "base/this_thread.h"
#include "library/search.h"
#include "runtime/call/device_memory.h"
#include "runtime/call/library_support.h"

namespace weft {

constinit const std::array<CachedCall, CachedCalls::kMost> CachedCalls::kNone{};
constinit thread_local CachedCalls cached_calls __attribute__((tls_model("initial-exec"))) = {};

bool CachedCall::is_left_of_call_class(const void* profiled_by) const {
  if (this_thread.is_inside() || (profiled_by && from_library(profiled_by))) return false;
  CallsByLength* const by_length = plan->variants->by_length();
  if (by_length && by_length->needs_length()) return false;
  CallClass& call_class = plan->variants->call_class();
  const auto variant = call_class.learner.variant_at_once();
  if (!variant || !is_left(call_class, *variant)) return false;
  Runtime& runtime = *Runtime::active();
  if (runtime.observing()) return false;
  if (by_length) by_length->count_call(0);
  return next_variant_at_once(runtime, *plan->communicator, call_class).has_value();
}

// Returns whether a call of this class that takes the variant is left to the MPI library as it is.
// The variant may have no plan yet, or one in which Weft declines the call.
bool CachedCall::is_left(const CallClass& call_class, int variant) const {
  if (plan->variants->by_length())
    return call_class.variants[static_cast<std::size_t>(variant)].engine == Engine::native &&
           !(devices_possible() && may_need_copies(call_class.key.kind));
  const Plan* const made = plan->variants->plan(variant);
  return made && made->declined;
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
