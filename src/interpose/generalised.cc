#include "interpose/generalised.h"

#include <algorithm>
#include <memory>
#include <string>

#include "interpose/generated/bodies.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "library/search.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft::interpose {
namespace {

// Copies a status except for its MPI_ERROR, which a query callback must not set.
void copy_status(const MPI_Status& from, MPI_Status* to) {
  const int error = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = error;
}

// The following three functions are the callbacks that the MPI library gets for a generalised
// request of the application. They call the application's callbacks at once if these are not being
// deferred on this thread (class PutOff).

int query(void* state, MPI_Status* status) {
  const auto& request = *static_cast<const GeneralisedRequest*>(state);
  set_status(status);
  Callbacks* const later = PutOff::of(request);
  if (!later) return request.query(status);
  later->queries = true;
  return MPI_SUCCESS;
}

int free(void* state) {
  const std::unique_ptr<const GeneralisedRequest> request(static_cast<GeneralisedRequest*>(state));
  if (Runtime::active()) Requests::own().count(request->handle, -1);
  generalised_requests.fetch_sub(1);
  Callbacks* const later = PutOff::of(*request);
  if (!later) return request->free();
  later->frees = true;
  return MPI_SUCCESS;
}

int cancel(void* state, int complete) {
  const auto& request = *static_cast<const GeneralisedRequest*>(state);
  Callbacks* const later = PutOff::of(request);
  if (!later) return request.cancel(complete);
  later->cancels = true;
  later->was_complete = complete;
  return MPI_SUCCESS;
}

// Returns a new, completed generalised request whose callbacks return the status and the error
// codes in `callbacks`. That object must exist until the request has been freed.
MPI_Request request_like(Callbacks& callbacks) {
  const auto query = [](void* state, MPI_Status* status) {
    copy_status(static_cast<Callbacks*>(state)->status, status);
    return static_cast<Callbacks*>(state)->query_code;
  };
  const auto free = [](void* state) { return static_cast<Callbacks*>(state)->free_code; };
  const auto cancel = [](void* state, int) { return static_cast<Callbacks*>(state)->cancel_code; };
  MPI_Request request = handles.request_null;
  library_calls.Grequest_start(query, free, cancel, &callbacks, &request);
  library_calls.Grequest_complete(request);
  return request;
}

// Completes all these requests by one call of MPI_Waitsome, and returns its error code.
int report_by_some(std::vector<MPI_Request>& requests, MPI_Status* statuses) {
  std::vector<int> indices(requests.size());
  int completed = 0;
  return next_calls.Waitsome(static_cast<int>(requests.size()), requests.data(), &completed,
                             indices.data(), statuses);
}

}  // namespace

void Callbacks::call() {
  const OutsideCalls outside;
  set_status(&status);
  if (queries) query_code = request.query(&status);
  if (cancels) cancel_code = request.cancel(was_complete);
  if (frees) free_code = request.free();
}

Callbacks* PutOff::of(const GeneralisedRequest& request) {
  if (!innermost_) return nullptr;
  auto& all = innermost_->callbacks_;
  const auto is_same = [&](const Callbacks& one) { return one.request.handle == request.handle; };
  const auto known = std::find_if(all.begin(), all.end(), is_same);
  return known != all.end() ? &*known : &all.emplace_back(Callbacks{request});
}

int PutOff::call(int code, MPI_Status* status, Report report) {
  innermost_ = outer_;
  for (Callbacks& callbacks : callbacks_) {
    callbacks.call();
    if (callbacks.queries && status != MPI_STATUS_IGNORE) copy_status(callbacks.status, status);
    if (!callbacks.have_failed()) continue;
    MPI_Request request = request_like(callbacks);
    code = report(&request, status);
    callbacks.query_code = callbacks.free_code = MPI_SUCCESS;
    if (request != handles.request_null) library_calls.Request_free(&request);
  }
  return code;
}

int PutOff::call(int code, std::span<const MPI_Request> requests, MPI_Status* statuses,
                 const int* indices, int count) {
  innermost_ = outer_;
  const bool with_statuses = statuses != MPI_STATUSES_IGNORE;
  const auto status_of = [&](const Callbacks& callbacks) -> MPI_Status* {
    for (int k = 0; k < count; ++k)
      if (requests[static_cast<std::size_t>(indices ? indices[k] : k)] == callbacks.request.handle)
        return &statuses[k];
    return nullptr;
  };
  std::vector<Callbacks*> failed;
  std::vector<MPI_Request> like_failed;
  for (Callbacks& callbacks : callbacks_) {
    callbacks.call();
    MPI_Status* const status = with_statuses ? status_of(callbacks) : nullptr;
    if (status) copy_status(callbacks.status, status);
    if (!callbacks.have_failed()) continue;
    failed.push_back(&callbacks);
    like_failed.push_back(request_like(callbacks));
  }
  if (failed.empty()) return code;
  std::vector<MPI_Status> reported(failed.size());
  MPI_Status* const told = with_statuses ? reported.data() : MPI_STATUSES_IGNORE;
  const int reported_code =
      indices ? report_by_some(like_failed, told)
              : next_calls.Waitall(static_cast<int>(failed.size()), like_failed.data(), told);
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  for (int k = 0; k < count && with_statuses && code == MPI_SUCCESS; ++k)
    statuses[k].MPI_ERROR = MPI_SUCCESS;
  for (std::size_t i = 0; i < failed.size() && with_statuses; ++i)
    if (MPI_Status* const status = status_of(*failed[i])) status->MPI_ERROR = reported[i].MPI_ERROR;
  return code == MPI_SUCCESS ? reported_code : code;
}

int report_by_wait(MPI_Request* request, MPI_Status* status) {
  return next_calls.Wait(request, status);
}

int report_by_status(MPI_Request* request, MPI_Status* status) {
  int complete = 0;
  return next_calls.Request_get_status(*request, &complete, status);
}

namespace special {

int Grequest_start(const void* from, MPI_Grequest_query_function* query_fn,
                   MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                   void* extra_state, MPI_Request* request) {
  Runtime* runtime = Runtime::active();
  if (!runtime || runtime->native() || is_fortran_binding(from))
    return next_calls.Grequest_start(query_fn, free_fn, cancel_fn, extra_state, request);
  auto made = std::make_unique<GeneralisedRequest>(
      GeneralisedRequest{query_fn, free_fn, cancel_fn, extra_state});
  const int code = next_calls.Grequest_start(query, free, cancel, made.get(), &made->handle);
  if (code != MPI_SUCCESS) return code;
  *request = made->handle;
  Requests::own().count(made->handle, 1);
  generalised_requests.fetch_add(1);
  static_cast<void>(made.release());  // free() deletes the object when the request is freed
  return code;
}

}  // namespace special

namespace object {

// Completes a generalised request of the application. If the application has already called
// MPI_Request_free, the MPI library also frees the request here, so that its callbacks may be
// called.
int Grequest_complete(bool, MPI_Request request) {
  return with_callbacks(MPI_STATUS_IGNORE, report_by_wait,
                        [&] { return next_calls.Grequest_complete(request); });
}

}  // namespace object
}  // namespace weft::interpose
