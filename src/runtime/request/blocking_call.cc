#include "runtime/request/blocking_call.h"

#include <sched.h>

#include "base/clock.h"
#include "library/generated/next_calls.h"
#include "runtime/job/runtime.h"

namespace weft {

BlockingCall::BlockingCall(CallId id) : id_(id) {
  Runtime* runtime = Runtime::active();
  if (!runtime) return;
  if (runtime->progress.caller_blocks()) handed_over_.begin(runtime->progress);
  alone_ = runtime->callers_only();
  if (runtime->observing()) began_ns_ = now_ns();
}

BlockingCall::~BlockingCall() {
  handed_over_.end();
  Runtime* runtime = began_ns_ ? Runtime::active() : nullptr;
  if (!runtime) return;
  const std::int64_t ended_ns = now_ns();
  runtime->summary.spent(id_, ended_ns - began_ns_);
  if (auto* track = runtime->application_track()) track->span(call_name(id_), began_ns_, ended_ns);
}

bool BlockingCall::must_help() const {
  const Runtime* const runtime = Runtime::active();
  return alone_ || (runtime && runtime->only_callers_advance());
}

int BlockingCall::drive(const std::function<int(MPI_Request*)>& post, MPI_Status* status) {
  MPI_Request request;
  const int code = post(&request);
  if (code != MPI_SUCCESS) return code;
  MPI_Status* kept = status ? status : MPI_STATUS_IGNORE;
  return repeat([&](int* completed) { return next_calls.Test(&request, completed, kept); });
}

int BlockingCall::repeat(const std::function<int(int*)>& ask) {
  int code = MPI_SUCCESS;
  Runtime::active()->progress.drive_until(
      [&] {
        int flag = 0;
        code = ask(&flag);
        return flag != 0 || code != MPI_SUCCESS;
      },
      [] { sched_yield(); });
  return code;
}

}  // namespace weft
