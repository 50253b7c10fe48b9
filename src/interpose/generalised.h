// Handles generalised requests (MPI_Grequest_start). The MPI library gets callbacks of Weft's. Weft
// calls the application's callbacks after the MPI library's call has returned. There are two
// reasons.
//
// First, the MPI library may hold a lock while it calls a callback, as MPICH does for free_fn. The
// application may have requested a thread level without such locks, which Weft has raised.
//
// Second, a callback may make collective calls, which either all ranks or none must offer to Weft.
// Inside the MPI library's call Weft would not take them, and ranks may differ in the completion
// call in which the callback is called.
#pragma once

#include <mpi.h>

#include <atomic>
#include <span>
#include <vector>

#include "base/left_calls.h"

namespace weft::interpose {

// The number of generalised requests that the application has started and that have not been freed
// yet.
inline std::atomic<int> generalised_requests{0};

// Holds the application's callbacks of a generalised request, and the request's handle.
struct GeneralisedRequest {
  MPI_Grequest_query_function* query_fn;
  MPI_Grequest_free_function* free_fn;
  MPI_Grequest_cancel_function* cancel_fn;
  void* extra_state;
  MPI_Request handle{};

  int query(MPI_Status* status) const { return query_fn ? query_fn(extra_state, status) : 0; }
  int free() const { return free_fn ? free_fn(extra_state) : 0; }
  int cancel(int complete) const { return cancel_fn ? cancel_fn(extra_state, complete) : 0; }
};

// Records which callbacks of a generalised request the MPI library has asked for during one MPI
// call, and what the application's callbacks returned afterwards.
struct Callbacks {
  GeneralisedRequest request;
  // Whether the MPI library has asked for query_fn, free_fn and cancel_fn.
  bool queries = false, frees = false, cancels = false;
  int was_complete = 0;  // the argument `complete` for cancel_fn
  int query_code = MPI_SUCCESS, free_code = MPI_SUCCESS, cancel_code = MPI_SUCCESS;
  MPI_Status status{};  // the status that query_fn has filled

  void call();
  bool have_failed() const { return query_code || free_code || cancel_code; }
};

// While an object of this class lives, callbacks that the MPI library calls on this thread are only
// recorded. Objects may be nested.
class PutOff {
 public:
  explicit PutOff(PutOff* outer) : outer_(outer) { innermost_ = this; }
  ~PutOff() { innermost_ = outer_; }
  static PutOff* innermost() { return innermost_; }
  PutOff(const PutOff&) = delete;
  PutOff& operator=(const PutOff&) = delete;

  // Returns the record of this request's callbacks, after adding it if necessary. Returns nullptr
  // if there is no object of this class on this thread, so that callbacks must be called at once.
  static Callbacks* of(const GeneralisedRequest& request);

  // The type of functions that make an MPI call of the same kind as the application's, on another
  // request.
  using Report = int (*)(MPI_Request* request, MPI_Status* status);
  // Calls the recorded callbacks after an MPI call on a single request has returned `code`. Returns
  // the code for the application. MPI libraries differ in how they treat an error of a callback.
  // Therefore, after such an error, report() makes an MPI call like the application's on a new
  // request whose callbacks return the same error, and its result is returned.
  int call(int code, MPI_Status* status, Report report);
  // Calls the recorded callbacks after an MPI call on several requests has returned `code`, and
  // returns the code for the application. count: the number of statuses. indices: the positions of
  // the requests to which the statuses belong; nullptr if statuses[k] belongs to request k.
  int call(int code, std::span<const MPI_Request> requests, MPI_Status* statuses,
           const int* indices, int count);

 private:
  static inline constinit thread_local PutOff* innermost_ = nullptr;
  PutOff* const outer_;
  std::vector<Callbacks> callbacks_;
};

// Two functions for the argument `report` of PutOff::call(): report_by_wait() for calls that
// complete a request, and report_by_status() for calls that only query it.
int report_by_wait(MPI_Request* request, MPI_Status* status);
int report_by_status(MPI_Request* request, MPI_Status* status);

// Makes an MPI call that may complete, free or cancel a generalised request, and calls that
// request's callbacks afterwards. call(): makes the MPI call. Returns an MPI error code.
template <class Call>
int with_callbacks(MPI_Status* status, PutOff::Report report, Call call) {
  if (generalised_requests.load(std::memory_order_relaxed) == 0) [[likely]]
    return call();
  LongjmpSafe<PutOff> put_off(PutOff::innermost());
  const int code = call();
  return put_off->call(code, status, report);
}

// Makes an MPI call that may complete several generalised requests, and calls their callbacks
// afterwards. call(): makes the MPI call. completed: where the MPI call stores the number of
// completed requests; nullptr if all complete at once. Returns an MPI error code.
template <class Call>
int with_callbacks(int count, const MPI_Request* requests, MPI_Status* statuses,
                   const int* completed, const int* indices, Call call) {
  if (generalised_requests.load(std::memory_order_relaxed) == 0 || count <= 0) [[likely]]
    return call();
  const std::vector<MPI_Request> before(requests, requests + count);
  LongjmpSafe<PutOff> put_off(PutOff::innermost());
  const int code = call();
  return put_off->call(code, before, statuses, indices, completed ? *completed : count);
}

}  // namespace weft::interpose
