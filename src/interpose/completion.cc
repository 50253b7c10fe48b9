// The completion calls. What the application holds are the MPI library's own request handles, so
// each call ends in the library's; before that, Weft's operations are brought forward.
#include <sched.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "interpose/generated/bodies.h"
#include "interpose/generated/library_calls.h"
#include "interpose/generated/next_calls.h"
#include "interpose/hooks.h"
#include "interpose/runtime.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

// One completion call of the application over some of Weft's, the library's and null requests.
class Completion {
 public:
  Completion(Runtime& runtime, CallId id, int count, MPI_Request* requests);

  // Brings all of Weft's among the requests to their end; sleeps where only workers are busy.
  void drive_to_end();
  // True if others of Weft's are held as well, so that a wait must go on helping them.
  bool must_keep_helping() const;
  // Repeats the library's non-blocking form `test(&flag)` until the flag is set, helping.
  template <class Test>
  int drive_until_flag(Test test);

  // After the library's call: counts what has been completed and reports errors of Weft's.
  int finish_single(int code);
  // `indices` (`completed` of them): where the k-th status belongs; nullptr: status k is request k.
  int finish_array(int code, MPI_Status* statuses, const int* indices, int completed);

 private:
  void observe_completed();
  bool completed(const CollectiveOperation& operation) const;

  Runtime& runtime_;
  const CallId id_;
  const std::span<MPI_Request> requests_;
  const std::vector<MPI_Request> before_;  // the library sets completed handles to null
  std::vector<std::shared_ptr<CollectiveOperation>> ours_;
  std::int64_t began_ns_ = 0;
};

Completion::Completion(Runtime& runtime, CallId id, int count, MPI_Request* requests)
    : runtime_(runtime),
      id_(id),
      requests_(requests, static_cast<std::size_t>(std::max(count, 0))),
      before_(requests_.begin(), requests_.end()) {
  for (const MPI_Request request : before_) {
    if (runtime.requests.held() == 0) break;
    if (request == handles.request_null) continue;
    if (auto operation = runtime.requests.find(request)) ours_.push_back(std::move(operation));
  }
  if (!runtime.observing()) return;
  began_ns_ = now_ns();
  for (auto& operation : ours_)
    if (operation->times.waiting_since == 0) operation->times.waiting_since = began_ns_;
}

void Completion::drive_to_end() {
  if (ours_.empty()) return;
  runtime_.progress.drive_until(
      [&] { return std::all_of(ours_.begin(), ours_.end(), [](auto& o) { return o->done(); }); },
      [&] {
        for (auto& operation : ours_) operation->wait_done();
      });
}

bool Completion::must_keep_helping() const {
  return runtime_.requests.held() > static_cast<int>(ours_.size());
}

template <class Test>
int Completion::drive_until_flag(Test test) {
  int code = MPI_SUCCESS;
  runtime_.progress.drive_until(
      [&] {
        int flag = 0;
        code = test(&flag);
        return flag != 0 || code != MPI_SUCCESS;
      },
      [] { sched_yield(); });
  return code;
}

bool Completion::completed(const CollectiveOperation& operation) const {
  const auto held = runtime_.requests.find(operation.request());
  return held.get() != &operation;
}

void Completion::observe_completed() {
  if (!runtime_.observing()) return;
  const std::int64_t ended_ns = now_ns();
  for (auto& operation : ours_)
    if (completed(*operation))
      runtime_.summary.completed(operation->id(), operation->times, ended_ns);
  for (std::size_t i = 0; i < before_.size(); ++i) {
    NativeRequest native;
    if (requests_[i] == before_[i] || !runtime_.requests.unwatch(before_[i], &native)) continue;
    native.times.waiting_since = began_ns_;
    runtime_.summary.completed(native.id, native.times, ended_ns);
  }
  if (auto* track = runtime_.application_track()) track->span(call_name(id_), began_ns_, ended_ns);
}

// Calls the handler of the communicator that the application used.
void call_error_handler(CollectiveOperation& operation) {
  const bool freed = operation.communicator().freed.load();
  library_calls.Comm_call_errhandler(freed ? handles.comm_world : operation.communicator().user,
                                     operation.error_code());
}

int Completion::finish_single(int code) {
  observe_completed();
  if (code != MPI_SUCCESS) return code;
  for (auto& operation : ours_) {
    if (!completed(*operation) || !operation->claim_error()) continue;
    call_error_handler(*operation);
    return operation->error_code();
  }
  return code;
}

int Completion::finish_array(int code, MPI_Status* statuses, const int* indices, int count) {
  observe_completed();
  for (auto& operation : ours_) {
    if (!completed(*operation) || !operation->claim_error()) continue;
    if (code == MPI_SUCCESS && statuses != MPI_STATUSES_IGNORE)
      for (int k = 0; k < count; ++k) statuses[k].MPI_ERROR = MPI_SUCCESS;
    code = MPI_ERR_IN_STATUS;
    for (int k = 0; k < count && statuses != MPI_STATUSES_IGNORE; ++k)
      if (before_[static_cast<std::size_t>(indices ? indices[k] : k)] == operation->request())
        statuses[k].MPI_ERROR = operation->error_code();
    call_error_handler(*operation);
  }
  return code;
}

// Null where the library alone has a say: nothing of Weft's is held and nothing is watched.
Runtime* involved() {
  Runtime* runtime = Runtime::active();
  if (!runtime || (runtime->requests.held() == 0 && !runtime->requests.watching())) return nullptr;
  return runtime;
}

}  // namespace

namespace complete {

int Wait(MPI_Request* request, MPI_Status* status) {
  const WatchedCall watched(CallId::Wait);
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Wait(request, status);
  Completion completion(*runtime, CallId::Wait, 1, request);
  completion.drive_to_end();
  return completion.finish_single(completion.must_keep_helping()
                                      ? completion.drive_until_flag([&](int* flag) {
                                          return next_calls.Test(request, flag, status);
                                        })
                                      : next_calls.Wait(request, status));
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const WatchedCall watched(CallId::Waitall);
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Waitall(count, requests, statuses);
  Completion completion(*runtime, CallId::Waitall, count, requests);
  completion.drive_to_end();
  const int code = completion.must_keep_helping() ? completion.drive_until_flag([&](int* flag) {
    return next_calls.Testall(count, requests, flag, statuses);
  })
                                                  : next_calls.Waitall(count, requests, statuses);
  return completion.finish_array(code, statuses, nullptr, count);
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const WatchedCall watched(CallId::Waitany);
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Waitany(count, requests, index, status);
  Completion completion(*runtime, CallId::Waitany, count, requests);
  return completion.finish_single(completion.drive_until_flag(
      [&](int* flag) { return next_calls.Testany(count, requests, index, flag, status); }));
}

int Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  const WatchedCall watched(CallId::Waitsome);
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Waitsome(count, requests, completed, indices, statuses);
  Completion completion(*runtime, CallId::Waitsome, count, requests);
  const int code = completion.drive_until_flag([&](int* flag) {
    const int tested = next_calls.Testsome(count, requests, completed, indices, statuses);
    *flag = *completed != 0;  // MPI_UNDEFINED where no request is active
    return tested;
  });
  return completion.finish_array(code, statuses, indices, *completed);
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Test(request, flag, status);
  Completion completion(*runtime, CallId::Test, 1, request);
  runtime->progress.poll();
  return completion.finish_single(next_calls.Test(request, flag, status));
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Testall(count, requests, flag, statuses);
  Completion completion(*runtime, CallId::Testall, count, requests);
  runtime->progress.poll();
  const int code = next_calls.Testall(count, requests, flag, statuses);
  return completion.finish_array(code, statuses, nullptr, *flag ? count : 0);
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Testany(count, requests, index, flag, status);
  Completion completion(*runtime, CallId::Testany, count, requests);
  runtime->progress.poll();
  return completion.finish_single(next_calls.Testany(count, requests, index, flag, status));
}

int Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Testsome(count, requests, completed, indices, statuses);
  Completion completion(*runtime, CallId::Testsome, count, requests);
  runtime->progress.poll();
  const int code = next_calls.Testsome(count, requests, completed, indices, statuses);
  return completion.finish_array(code, statuses, indices, *completed);
}

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  poll();
  return next_calls.Request_get_status(request, flag, status);
}

#if !defined(WEFT_FAMILY_OPENMPI)

int Request_get_status_all(int count, const MPI_Request* requests, int* flag,
                           MPI_Status* statuses) {
  poll();
  return next_calls.Request_get_status_all(count, requests, flag, statuses);
}

int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag,
                           MPI_Status* status) {
  poll();
  return next_calls.Request_get_status_any(count, requests, index, flag, status);
}

int Request_get_status_some(int count, const MPI_Request* requests, int* completed, int* indices,
                            MPI_Status* statuses) {
  poll();
  return next_calls.Request_get_status_some(count, requests, completed, indices, statuses);
}

#endif

}  // namespace complete
}  // namespace weft::interpose
