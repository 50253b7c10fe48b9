// Handles generalised requests of the application. The library gets Weft's callbacks, and the
// application's callbacks are called after the library's call has returned. There are two reasons.
// A library may hold a lock while it calls them, as MPICH does for free_fn; the program may have
// requested a thread level without such locks, which Weft has raised. Besides, MPI calls in a
// callback are offered to Weft on all ranks alike only outside the library's call, since completion
// calls differ between ranks.
#pragma once

#include <mpi.h>

#include <atomic>
#include <span>
#include <vector>

#include "base/left_calls.h"

namespace weft::interpose {

// The number of generalised requests that the application has started and not freed.
inline std::atomic<int> generalised_requests{0};

// A generalised request of the application: its callbacks and its handle.
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

// The callbacks of a generalised request that the library has requested during an MPI call, and
// their results.
struct Callbacks {
  GeneralisedRequest request;
  bool queries = false, frees = false, cancels = false;  // which callbacks the library has
                                                         // requested
  int was_complete = 0;                                  // the argument `complete` of cancel_fn
  int query_code = MPI_SUCCESS, free_code = MPI_SUCCESS, cancel_code = MPI_SUCCESS;
  MPI_Status status{};  // filled by query_fn

  void call();
  bool have_failed() const { return query_code || free_code || cancel_code; }
};

// While a PutOff lives, it defers callbacks that the library calls on this thread.
class PutOff {
 public:
  explicit PutOff(PutOff* outer) : outer_(outer) { innermost_ = this; }
  ~PutOff() { innermost_ = outer_; }
  static PutOff* innermost() { return innermost_; }
  PutOff(const PutOff&) = delete;
  PutOff& operator=(const PutOff&) = delete;

  // Returns the object that records the request's deferred callbacks; nullptr if nothing is
  // deferred on this thread.
  static Callbacks* of(const GeneralisedRequest& request);

  // A function that makes a call of the library like the application's, for call().
  using Report = int (*)(MPI_Request* request, MPI_Status* status);
  // Calls the deferred callbacks after a call that returned `code`. Returns the code for the
  // application. Libraries treat errors of callbacks differently: therefore `report` makes a call
  // like the application's on a request whose callbacks return these errors.
  int call(int code, MPI_Status* status, Report report);
  // Calls the deferred callbacks after a call with several requests. indices: `count` entries, the
  // request of the k-th status; nullptr if status k belongs to request k.
  int call(int code, std::span<const MPI_Request> requests, MPI_Status* statuses,
           const int* indices, int count);

 private:
  static inline constinit thread_local PutOff* innermost_ = nullptr;
  PutOff* const outer_;
  std::vector<Callbacks> callbacks_;
};

// The two functions to pass as `report`: report_by_wait() for calls that complete a single request,
// and report_by_status() for calls that only query it.
int report_by_wait(MPI_Request* request, MPI_Status* status);
int report_by_status(MPI_Request* request, MPI_Status* status);

// Makes a call that may complete, free or cancel a generalised request, and calls its deferred
// callbacks afterwards. Returns an MPI error code.
template <class Call>
int with_callbacks(MPI_Status* status, PutOff::Report report, Call call) {
  if (generalised_requests.load(std::memory_order_relaxed) == 0) [[likely]]
    return call();
  LongjmpSafe<PutOff> put_off(PutOff::innermost());
  const int code = call();
  return put_off->call(code, status, report);
}

// Makes a call that may complete several generalised requests, and calls their deferred callbacks
// afterwards. completed: the number of completed requests, which the call sets. Returns an MPI
// error code.
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
