// Publishes which call this rank is in, for `weft check`, which reports a job that makes no
// progress (python/weft/check/waits.py). It needs no lock: the first thread that enters a call owns
// the entry until it returns. Calls of other threads only show that the rank makes progress.
#pragma once

#include "advise/callers.h"
#include "base/left_calls.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

void waits_begin(const char* directory, int rank, int ranks);
// Publishes that this rank has entered a call. Returns true if that is so; then wait_ends() must
// follow. Returns false if another thread's call is published, or if nothing is published in this
// job.
bool wait_begins(CallId call, Called called);
void wait_ends();
// Ends the publication of a call even if the call is left by a jump or an exception.
class Published final : public Cleanup {
 public:
  constexpr Published() = default;
  bool begin(CallId call, Called called) {
    if (!wait_begins(call, called)) return false;
    Cleanup::begin();
    return true;
  }
  void end() {
    Cleanup::end();
    wait_ends();
  }

 private:
  void clean_up() override { wait_ends(); }
};
inline constinit thread_local Published published __attribute__((tls_model("initial-exec")));
// polls() records a test that found nothing complete; got_on() records a completion or a new
// operation.
void polls(CallId call, Called called);
void got_on();

}  // namespace weft::advise
