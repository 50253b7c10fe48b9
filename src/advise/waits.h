// Publishes in a file which MPI call this rank is in. `weft check` reads it and reports a job that
// makes no progress (python/weft/check/waits.py). No lock is needed: only one call is published at
// a time, that of the first thread that enters one. Calls of other threads only show that the rank
// makes progress.
#pragma once

#include "advise/callers.h"
#include "base/left_calls.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

void waits_begin(const char* directory, int rank, int ranks);
// Publishes that this rank has entered an MPI call. If it returns true, wait_ends() must be called
// later. It returns false if the call of another thread is already published, or if this job
// publishes nothing.
bool wait_begins(CallId call, Called called);
void wait_ends();
// Calls wait_begins() and wait_ends() around an MPI call, even if the call is left by longjmp() or
// an exception.
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
// polls() publishes that this rank has made a test (such as MPI_Test) that found no completed
// request. got_on() publishes the end of a series of such tests: a request was completed, or an
// operation was started.
void polls(CallId call, Called called);
void got_on();

}  // namespace weft::advise
