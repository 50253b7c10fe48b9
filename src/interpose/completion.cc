// Implements MPI_Wait, MPI_Test and their variants. The application's request handles are the MPI
// library's. Each call therefore first progresses Weft's collectives, and then makes the MPI
// library's call of the same name.
#include <sched.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/left_calls.h"
#include "interpose/generalised.h"
#include "interpose/generated/bodies.h"
#include "interpose/hooks.h"
#include "interpose/single_persistent.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/persistent.h"
#include "runtime/request/requests.h"
#include "runtime/request/transfers.h"
#include "runtime/request/watchdog.h"

namespace weft::interpose {
namespace {

// A request in a completion call that belongs to an active collective of Weft.
struct Ours {
  std::shared_ptr<CollectiveOperation> operation;
  PersistentOperation* persistent;  // nullptr if the collective is not persistent
  int index;                        // position in the array of requests

  bool persistent_and_done() const { return persistent && operation->done(); }
};

// Returns whether a thread in MPI_Wait must also advance the collectives of other application
// threads, because there is no progress thread.
bool must_always_help(const Runtime& runtime) {
  return runtime.callers_only() && runtime.several_callers();
}

// While this object lives, the caller blocks inside the MPI library, and the progress thread
// advances the collectives that other application threads start.
class LibraryWaits {
 public:
  explicit LibraryWaits(Runtime* runtime) {
    if (runtime && runtime->several_callers() && runtime->progress.caller_blocks())
      blocked_.begin(runtime->progress);
  }

 private:
  LongjmpSafe<Progress::Blocked> blocked_;
};

// Carries out one completion call on an array of requests of Weft and of the MPI library. The MPI
// library does not see Weft's persistent requests, since some libraries' array calls fail with
// them. The handles are copied, since a callback that leaves the call by longjmp() may end the
// array's life.
class Completion {
 public:
  Completion(Runtime& runtime, CallId id, int count, MPI_Request* requests);

  MPI_Request* for_library() { return hidden_.empty() ? requests_.data() : hidden_.data(); }

  // Waits until all of Weft's collectives among the requests are complete.
  void drive_to_end();
  // Returns whether the caller must advance other collectives while it waits for its requests.
  bool must_keep_helping() const;
  // Calls test(&flag) of the MPI library until the flag is set, and advances Weft's other
  // collectives meanwhile. Returns the MPI library's error code.
  template <class Test>
  int drive_until_flag(Test test);

  // Waits for all requests, and advances Weft's other collectives meanwhile. MPICH's MPI_Testall is
  // not used: with pending persistent requests it reports a false error.
  int wait_all(MPI_Status* statuses);
  bool persistent_pending() const;
  int test_any(int* index, int* flag, MPI_Status* status);
  int test_some(int* completed, int* indices, MPI_Status* statuses);

  // Ends the call on a single request, after the MPI library's call has returned `code`. Counts the
  // completed collective for the summary, and reports its error. index: the position of the
  // completed request, or MPI_UNDEFINED. Returns the error code for the application.
  int finish_single(int code, int index);
  // Ends the call on several requests, as finish_single() does for one. count: the number of
  // completed requests. indices: their positions; nullptr if statuses[k] belongs to request k.
  int finish_array(int code, MPI_Status* statuses, const int* indices, int count);

 private:
  // Copies the handles that the MPI library has changed to the application's array.
  void bring_back();
  void completed_at(int index, MPI_Status* status, bool partly);
  void count_wait(std::int64_t ended_ns);
  void observe_completed();
  bool is_completed(const Ours& ours) const;

  Runtime& runtime_;
  const CallId id_;
  const std::span<MPI_Request> requests_;
  const std::vector<MPI_Request> before_;  // the handles at the beginning of the call
  // The requests for the MPI library, with null requests in place of Weft's persistent ones.
  std::vector<MPI_Request> hidden_;
  std::vector<std::size_t> hidden_at_;  // the positions of Weft's persistent requests in the array
  std::vector<Ours> ours_;
  std::int64_t began_ns_ = 0;
};

Completion::Completion(Runtime& runtime, CallId id, int count, MPI_Request* requests)
    : runtime_(runtime),
      id_(id),
      requests_(requests, static_cast<std::size_t>(std::max(count, 0))),
      before_(requests_.begin(), requests_.end()) {
  for (int i = 0; i < count && Requests::own().existing() > 0; ++i) {
    if (requests[i] == handles.request_null) continue;
    auto operation = Requests::own().find(requests[i]);
    if (!operation) continue;
    auto* persistent = operation->persistent();
    if (persistent) {
      if (operation->active()) persistent->hand_over();
      if (hidden_.empty()) hidden_ = before_;
      hidden_at_.push_back(static_cast<std::size_t>(i));
      hidden_[hidden_at_.back()] = handles.request_null;
    }
    if (operation->active()) ours_.push_back({std::move(operation), persistent, i});
  }
  if (!runtime.observing()) return;
  began_ns_ = now_ns();
  for (const Ours& ours : ours_)
    if (ours.operation->times.waiting_since == 0) ours.operation->times.waiting_since = began_ns_;
}

void Completion::bring_back() {
  for (const std::size_t i : hidden_at_) hidden_[i] = before_[i];
  std::copy(hidden_.begin(), hidden_.end(), requests_.begin());
}

void Completion::drive_to_end() {
  if (ours_.empty()) return;
  for (const Ours& ours : ours_) ours.operation->mark_waited_on();
  const auto done = [](const Ours& ours) { return ours.operation->done(); };
  runtime_.progress.wait_until([&] { return std::all_of(ours_.begin(), ours_.end(), done); },
                               [&] {
                                 for (auto& ours : ours_) ours.operation->wait_done();
                               });
}

bool Completion::must_keep_helping() const {
  return must_always_help(runtime_) || Requests::own().active() > static_cast<int>(ours_.size());
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

int Completion::wait_all(MPI_Status* statuses) {
  const bool with_statuses = statuses != MPI_STATUSES_IGNORE;
  std::vector<int> codes(requests_.size(), MPI_SUCCESS);
  bool failed = false;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    codes[i] = drive_until_flag([&](int* flag) {
      return next_calls.Test(&for_library()[i], flag,
                             with_statuses ? &statuses[i] : MPI_STATUS_IGNORE);
    });
    failed = failed || codes[i] != MPI_SUCCESS;
  }
  for (std::size_t i = 0; failed && with_statuses && i < codes.size(); ++i)
    statuses[i].MPI_ERROR = codes[i];
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

bool Completion::persistent_pending() const {
  return std::any_of(ours_.begin(), ours_.end(),
                     [](const Ours& ours) { return ours.persistent && !ours.operation->done(); });
}

int Completion::test_any(int* index, int* flag, MPI_Status* status) {
  for (const Ours& ours : ours_) {
    if (!ours.persistent_and_done()) continue;
    *index = ours.index;
    *flag = 1;
    set_status(status);
    return MPI_SUCCESS;
  }
  const int code =
      next_calls.Testany(static_cast<int>(requests_.size()), for_library(), index, flag, status);
  if (*flag && *index == MPI_UNDEFINED && persistent_pending()) *flag = 0;
  return code;
}

int Completion::test_some(int* completed, int* indices, MPI_Status* statuses) {
  const int code = next_calls.Testsome(static_cast<int>(requests_.size()), for_library(), completed,
                                       indices, statuses);
  if (code != MPI_SUCCESS) return code;
  const bool library_has_none = *completed == MPI_UNDEFINED;
  if (library_has_none) *completed = 0;
  for (const Ours& ours : ours_) {
    if (!ours.persistent_and_done()) continue;
    if (statuses != MPI_STATUSES_IGNORE) set_status(&statuses[*completed]);
    indices[(*completed)++] = ours.index;
  }
  if (library_has_none && *completed == 0 && !persistent_pending()) *completed = MPI_UNDEFINED;
  return code;
}

// Makes the request at `index` inactive, and sets its status, if it is a persistent request of
// Weft. partly: whether the status must contain an error code, because other requests have failed.
void Completion::completed_at(int index, MPI_Status* status, bool partly) {
  for (const Ours& ours : ours_) {
    if (ours.index != index || !ours.persistent) continue;
    if (status) set_status(status);
    if (status && partly) status->MPI_ERROR = MPI_SUCCESS;
    ours.persistent->deactivate();
  }
}

bool Completion::is_completed(const Ours& ours) const {
  if (ours.persistent) return !ours.operation->active();
  return Requests::own().find(ours.operation->request()) != ours.operation;
}

// For the summary, divides the time of this call among the collectives waited for.
void Completion::count_wait(std::int64_t ended_ns) {
  std::vector<std::int64_t> ends_ns;
  for (const Ours& ours : ours_) ends_ns.push_back(end_of_wait(*ours.operation, ended_ns));
  std::vector<MPI_Request> watched;
  for (const MPI_Request request : before_)
    if (Requests::own().is_watched(request)) watched.push_back(request);
  ends_ns.resize(ends_ns.size() + watched.size(), ended_ns);
  const std::vector<std::int64_t> shares = divided_wait(began_ns_, ends_ns);
  auto share = shares.begin();
  for (const Ours& ours : ours_) ours.operation->times.waited += *share++;
  for (const MPI_Request request : watched)
    Requests::own().waited_for(request, began_ns_, *share++);
}

void Completion::observe_completed() {
  const bool observing = runtime_.observing();
  if (!observing && !Requests::own().watching()) return;
  const std::int64_t ended_ns = observing ? now_ns() : 0;
  if (observing) count_wait(ended_ns);
  for (const Ours& ours : ours_) {
    Times& times = ours.operation->times;
    // waiting_since is 0 if a nested call of another PMPI tool has counted the collective.
    if (!is_completed(ours) || times.waiting_since == 0) continue;
    runtime_.summary.completed(ours.operation->id(), times, ended_ns);
    times.waiting_since = 0;
  }
  const MPI_Request* after = for_library();
  for (std::size_t i = 0; i < before_.size(); ++i) {
    NativeRequest native;
    if (after[i] == before_[i] || !Requests::own().unwatch(before_[i], &native)) continue;
    if (!observing) continue;
    runtime_.summary.completed(native.id, native.times, ended_ns);
  }
  if (auto* track = runtime_.application_track()) track->span(call_name(id_), began_ns_, ended_ns);
}

int Completion::finish_single(int code, int index) {
  bring_back();
  if (index != MPI_UNDEFINED) completed_at(index, nullptr, false);
  observe_completed();
  if (code != MPI_SUCCESS) return code;
  for (const Ours& ours : ours_)
    if (is_completed(ours) && ours.operation->claim_error())
      return call_error_handler(*ours.operation, ours.operation->error_code());
  return code;
}

int Completion::finish_array(int code, MPI_Status* statuses, const int* indices, int count) {
  bring_back();
  const bool with_statuses = statuses != MPI_STATUSES_IGNORE;
  const auto place = [&](int k) { return indices ? indices[k] : k; };
  for (int k = 0; k < count; ++k)
    completed_at(place(k), with_statuses ? &statuses[k] : nullptr, code == MPI_ERR_IN_STATUS);
  observe_completed();
  for (const Ours& ours : ours_) {
    if (!is_completed(ours) || !ours.operation->claim_error()) continue;
    if (code == MPI_SUCCESS && with_statuses)
      for (int k = 0; k < count; ++k) statuses[k].MPI_ERROR = MPI_SUCCESS;
    code = MPI_ERR_IN_STATUS;
    for (int k = 0; k < count && with_statuses; ++k)
      if (place(k) == ours.index) statuses[k].MPI_ERROR = ours.operation->error_code();
    call_error_handler(*ours.operation, ours.operation->error_code());
  }
  return code;
}

// Completes the requests of an MPI_Waitall, if all are active persistent requests of Weft. Returns
// false if any is not, if any has failed, or if a summary or trace is requested.
bool wait_for_persistent(Runtime& runtime, int count, MPI_Request* requests, MPI_Status* statuses) {
  if (count <= 0 || runtime.observing()) return false;
  const std::span<MPI_Request> all(requests, static_cast<std::size_t>(count));
  const auto at = [&](MPI_Request request) {
    return SinglePersistent(runtime, CallId::Waitall, request);
  };
  if (!std::all_of(all.begin(), all.end(), [&](MPI_Request one) { return bool{at(one)}; }))
    return false;
  for (const MPI_Request one : all) at(one).drive_to_end();
  if (std::any_of(all.begin(), all.end(), [&](MPI_Request one) { return at(one).has_failed(); }))
    return false;
  for (std::size_t i = 0; i < all.size(); ++i)
    at(all[i]).complete(statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
  return true;
}

// Waits for one request of any kind: Weft's, the MPI library's or a null request.
[[gnu::noinline]] int wait_for_any(Runtime& runtime, MPI_Request* request, MPI_Status* status) {
  LongjmpSafe<Completion> completion(runtime, CallId::Wait, 1, request);
  completion->drive_to_end();
  const auto wait = [&] {
    const LibraryWaits waits(&runtime);
    return next_calls.Wait(request, status);
  };
  const int code = completion->must_keep_helping() ? completion->drive_until_flag([&](int* flag) {
    return next_calls.Test(request, flag, status);
  })
                                                   : wait();
  return completion->finish_single(code, 0);
}

// Returns the runtime if Weft must take part in this completion call; nullptr if the application
// has no requests of Weft's and the summary watches none of the MPI library's.
inline Runtime* involved() {
  Runtime* runtime = Runtime::active();
  if (!runtime) return nullptr;
  InlineCall::own().hand_over();
  const bool has_say = Requests::own().existing() > 0 || Requests::own().watching();
  return has_say || must_always_help(*runtime) ? runtime : nullptr;
}

int wait(MPI_Request* request, MPI_Status* status) {
  Runtime* runtime = Runtime::active();
  if (runtime && InlineCall::own().has(*request))
    return InlineCall::own().wait(*runtime, request, status);
  const WatchedCall watched(CallId::Wait);
  runtime = involved();
  if (!runtime) {
    const LibraryWaits waits(Runtime::active());
    return next_calls.Wait(request, status);
  }
  if (SinglePersistent persistent(*runtime, CallId::Wait, *request); persistent) {
    persistent.drive_to_end();
    return persistent.complete(status);
  }
  return wait_for_any(*runtime, request, status);
}

// Carries out MPI_Waitall on one request of a collective that only the caller advances.
int wait_inline(Runtime& runtime, MPI_Request* request, MPI_Status* statuses) {
  const bool with_status = statuses != MPI_STATUSES_IGNORE;
  const int code =
      InlineCall::own().wait(runtime, request, with_status ? statuses : MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS) return code;
  if (with_status) statuses->MPI_ERROR = code;
  return MPI_ERR_IN_STATUS;
}

int wait_all(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (Runtime* own = Runtime::active(); own && count == 1 && InlineCall::own().has(*requests))
    return wait_inline(*own, requests, statuses);
  const WatchedCall watched(CallId::Waitall);
  Runtime* runtime = involved();
  if (!runtime) {
    const LibraryWaits waits(Runtime::active());
    return next_calls.Waitall(count, requests, statuses);
  }
  if (wait_for_persistent(*runtime, count, requests, statuses)) return MPI_SUCCESS;
  LongjmpSafe<Completion> completion(*runtime, CallId::Waitall, count, requests);
  completion->drive_to_end();
  const auto wait = [&] {
    const LibraryWaits waits(runtime);
    return next_calls.Waitall(count, completion->for_library(), statuses);
  };
  const int code = completion->must_keep_helping() ? completion->wait_all(statuses) : wait();
  return completion->finish_array(code, statuses, nullptr, count);
}

int wait_any(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const WatchedCall watched(CallId::Waitany);
  Runtime* runtime = involved();
  if (!runtime) {
    const LibraryWaits waits(Runtime::active());
    return next_calls.Waitany(count, requests, index, status);
  }
  LongjmpSafe<Completion> completion(*runtime, CallId::Waitany, count, requests);
  const int code = completion->drive_until_flag(
      [&](int* flag) { return completion->test_any(index, flag, status); });
  return completion->finish_single(code, *index);
}

int wait_some(int count, MPI_Request* requests, int* completed, int* indices,
              MPI_Status* statuses) {
  const WatchedCall watched(CallId::Waitsome);
  Runtime* runtime = involved();
  if (!runtime) {
    const LibraryWaits waits(Runtime::active());
    return next_calls.Waitsome(count, requests, completed, indices, statuses);
  }
  LongjmpSafe<Completion> completion(*runtime, CallId::Waitsome, count, requests);
  const int code = completion->drive_until_flag([&](int* flag) {
    const int tested = completion->test_some(completed, indices, statuses);
    *flag = *completed != 0;  // also true for MPI_UNDEFINED, which means that no request is active
    return tested;
  });
  return completion->finish_array(code, statuses, indices, *completed);
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  Runtime* runtime = Runtime::active();
  if (runtime && InlineCall::own().has(*request))
    return InlineCall::own().test(*runtime, request, flag, status);
  runtime = involved();
  if (!runtime) return next_calls.Test(request, flag, status);
  if (SinglePersistent persistent(*runtime, CallId::Test, *request); persistent) {
    *flag = persistent.test();
    return *flag ? persistent.complete(status) : MPI_SUCCESS;
  }
  runtime->progress.poll_in_test_call();
  LongjmpSafe<Completion> completion(*runtime, CallId::Test, 1, request);
  const int code = next_calls.Test(completion->for_library(), flag, status);
  return completion->finish_single(code, *flag ? 0 : MPI_UNDEFINED);
}

int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Testall(count, requests, flag, statuses);
  LongjmpSafe<Completion> completion(*runtime, CallId::Testall, count, requests);
  runtime->progress.poll_in_test_call();
  *flag = 0;
  if (completion->persistent_pending())
    return completion->finish_array(MPI_SUCCESS, statuses, nullptr, 0);
  const int code = next_calls.Testall(count, completion->for_library(), flag, statuses);
  return completion->finish_array(code, statuses, nullptr, *flag ? count : 0);
}

int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Testany(count, requests, index, flag, status);
  LongjmpSafe<Completion> completion(*runtime, CallId::Testany, count, requests);
  runtime->progress.poll_in_test_call();
  const int code = completion->test_any(index, flag, status);
  return completion->finish_single(code, *flag ? *index : MPI_UNDEFINED);
}

int test_some(int count, MPI_Request* requests, int* completed, int* indices,
              MPI_Status* statuses) {
  Runtime* runtime = involved();
  if (!runtime) return next_calls.Testsome(count, requests, completed, indices, statuses);
  LongjmpSafe<Completion> completion(*runtime, CallId::Testsome, count, requests);
  runtime->progress.poll_in_test_call();
  const int code = completion->test_some(completed, indices, statuses);
  return completion->finish_array(code, statuses, indices, *completed);
}

}  // namespace

namespace complete {

bool any_is_ours(int count, const MPI_Request* requests) {
  Runtime* runtime = Runtime::active();
  if (!runtime || count <= 0) return false;
  InlineCall::own().hand_over();
  const bool transfers = active_transfers.load(std::memory_order_relaxed) > 0;
  if (Requests::own().existing() == 0 && !transfers) return false;
  const bool generalised = generalised_requests.load(std::memory_order_relaxed) > 0;
  return std::any_of(requests, requests + count, [&](MPI_Request request) {
    if (transfers && Transfers::own().knows(request)) return true;
    if (generalised && Requests::may_be_ours(request)) return true;
    const auto operation = Requests::own().find(request);
    if (!operation) return false;
    return operation->persistent() ? operation->active() : !operation->done();
  });
}

int Wait(MPI_Request* request, MPI_Status* status) {
  return with_callbacks(status, report_by_wait, [&] {
    TakenTransfers transfers(1, request);
    return transfers.all_completed(wait(request, status));
  });
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return with_callbacks(count, requests, statuses, nullptr, nullptr, [&] {
    TakenTransfers transfers(count, requests);
    return transfers.all_completed(wait_all(count, requests, statuses));
  });
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return with_callbacks(status, report_by_wait, [&] {
    TakenTransfers transfers(count, requests);
    const int code = wait_any(count, requests, index, status);
    return transfers.completed(code, 1, index);
  });
}

int Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return with_callbacks(count, requests, statuses, completed, indices, [&] {
    TakenTransfers transfers(count, requests);
    const int code = wait_some(count, requests, completed, indices, statuses);
    return transfers.completed(code, *completed, indices);
  });
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return with_callbacks(status, report_by_wait, [&] {
    TakenTransfers transfers(1, request);
    const int code = test(request, flag, status);
    return transfers.all_completed(code, *flag);
  });
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return with_callbacks(count, requests, statuses, nullptr, nullptr, [&] {
    TakenTransfers transfers(count, requests);
    const int code = test_all(count, requests, flag, statuses);
    return transfers.all_completed(code, *flag);
  });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return with_callbacks(status, report_by_wait, [&] {
    TakenTransfers transfers(count, requests);
    const int code = test_any(count, requests, index, flag, status);
    return transfers.completed(code, *flag ? 1 : 0, index);
  });
}

int Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return with_callbacks(count, requests, statuses, completed, indices, [&] {
    TakenTransfers transfers(count, requests);
    const int code = test_some(count, requests, completed, indices, statuses);
    return transfers.completed(code, *completed, indices);
  });
}

namespace {

// Progresses Weft's collectives before an MPI_Request_get_status. For each active persistent
// request of Weft, starts the MPI library's request whose state that call will report.
void look_at(int count, const MPI_Request* requests) {
  poll();
  Runtime* runtime = involved();
  for (int i = 0; runtime && i < count; ++i) {
    auto* const persistent = Requests::own().find_persistent(requests[i]);
    if (!persistent || !persistent->active()) continue;
    persistent->hand_over();
    persistent->show_to_library();
  }
}

}  // namespace

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  look_at(1, &request);
  return with_callbacks(status, report_by_status,
                        [&] { return next_calls.Request_get_status(request, flag, status); });
}

#if !defined(WEFT_FAMILY_OPENMPI)

int Request_get_status_all(int count, const MPI_Request* requests, int* flag,
                           MPI_Status* statuses) {
  look_at(count, requests);
  return with_callbacks(count, requests, statuses, nullptr, nullptr, [&] {
    return next_calls.Request_get_status_all(count, requests, flag, statuses);
  });
}

int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag,
                           MPI_Status* status) {
  look_at(count, requests);
  return with_callbacks(status, report_by_status, [&] {
    return next_calls.Request_get_status_any(count, requests, index, flag, status);
  });
}

int Request_get_status_some(int count, const MPI_Request* requests, int* completed, int* indices,
                            MPI_Status* statuses) {
  look_at(count, requests);
  return with_callbacks(count, requests, statuses, completed, indices, [&] {
    return next_calls.Request_get_status_some(count, requests, completed, indices, statuses);
  });
}

#endif

}  // namespace complete
}  // namespace weft::interpose
