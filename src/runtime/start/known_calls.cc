// The answers that a thread remembers go when the thread ends.
#include "runtime/start/known_calls.h"

#include "base/this_thread.h"
#include "library/search.h"

namespace weft {

constinit const std::array<KnownCall, KnownCalls::kMost> KnownCalls::kNone{};
constinit thread_local KnownCalls known_calls __attribute__((tls_model("initial-exec"))) = {};

bool KnownCall::is_left_at_site(const void* profiled_by) const {
  if (this_thread.is_inside() || (profiled_by && from_library(profiled_by))) return false;
  Site& site = *plan->ways->site;
  const auto way = site.learner.way_at_once();
  if (!way || site.key.blocking) return false;
  const Plan* const made = plan->ways->plan(*way);
  Runtime& runtime = *Runtime::active();
  if (!made || !made->declined || runtime.observing()) return false;
  return next_way_at_once(runtime, *plan->communicator, site).has_value();
}

namespace {

struct AtThreadEnd {
  ~AtThreadEnd() { known_calls.forget_all(); }
};

}  // namespace

KnownCall* KnownCalls::own() {
  if (made) return made;
  static thread_local AtThreadEnd at_thread_end;
  all = made = new KnownCall[kMost]{};
  return made;
}

void KnownCalls::forget_all() {
  delete[] made;
  made = nullptr;
  all = kNone.data();
}

}  // namespace weft
