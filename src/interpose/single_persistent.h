// SinglePersistent completes one persistent request of Weft without calling the MPI library. Unlike
// the class Completion it needs no list of requests, which makes short collectives faster.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/request/persistent.h"
#include "runtime/request/requests.h"

namespace weft::interpose {

class SinglePersistent {
 public:
  // Looks for the operation of the request. Afterwards operator bool tells whether the request is
  // an active persistent request of Weft.
  SinglePersistent(Runtime& runtime, CallId id, MPI_Request request) : runtime_(runtime), id_(id) {
    auto* const found = Requests::own().find_persistent(request);
    if (!found || !found->active()) return;
    operation_ = found;
    if (!runtime.observing()) [[likely]]
      return;
    began_ns_ = now_ns();
    if (operation_->times.waiting_since == 0) operation_->times.waiting_since = began_ns_;
  }

  explicit operator bool() const { return operation_ != nullptr; }

  void drive_to_end() {
    const bool is_inline = operation_->claim();
    if (is_inline && operation_->advance_inline(runtime_.progress.polls_inline())) return;
    drive(runtime_.progress, *operation_, is_inline);
  }
  // Progresses all of Weft's active collectives once. Returns whether the request's own collective
  // is complete.
  bool test() {
    const bool is_inline = operation_->claim();
    runtime_.progress.poll_in_test_call();
    const bool done = is_inline ? operation_->progress_inline() : operation_->done();
    if (!done && began_ns_ != 0) [[unlikely]]
      operation_->times.waited += now_ns() - began_ns_;
    return done;
  }

  // Returns whether the collective has failed. The result is valid only after the collective is
  // complete.
  bool has_failed() const { return operation_->error_code() != MPI_SUCCESS; }

  int complete(MPI_Status* status) {
    operation_->deactivate();
    if (status != MPI_STATUS_IGNORE) set_status(status);
    if (runtime_.observing()) observe_completed();
    if (!operation_->claim_error()) [[likely]]
      return MPI_SUCCESS;
    return call_error_handler(*operation_, operation_->error_code());
  }

 private:
  [[gnu::noinline]] static void drive(Progress& progress, PersistentOperation& operation,
                                      bool is_inline) {
    operation.mark_waited_on();
    if (is_inline)
      progress.drive_until([&] { return operation.advance_inline(1); },
                           [&] { progress.yield_core(); });
    else
      progress.wait_until([&] { return operation.done(); }, [&] { operation.wait_done(); });
  }
  [[gnu::noinline]] void observe_completed() const {
    const std::int64_t ended_ns = now_ns();
    const std::int64_t until_ns = end_of_wait(*operation_, ended_ns);
    operation_->times.waited += std::max<std::int64_t>(until_ns - began_ns_, 0);
    runtime_.summary.completed(operation_->id(), operation_->times, ended_ns);
    if (auto* track = runtime_.application_track())
      track->span(call_name(id_), began_ns_, ended_ns);
  }

  Runtime& runtime_;
  const CallId id_;
  PersistentOperation* operation_ = nullptr;
  std::int64_t began_ns_ = 0;
};

}  // namespace weft::interpose
