// The application's own generalised requests: the library gets callbacks of Weft's, and the
// application's are called once the library's call has returned.
// Why: a library may hold a lock while it calls them, as MPICH does with free_fn, and the program
// may have asked for a level of threads, which Weft has raised, at which there is none. And only
// outside the library's call are the calls in them offered to Weft on all ranks alike, since each
// rank's completion call takes its own way.
#pragma once

#include <mpi.h>

#include <atomic>
#include <span>
#include <vector>

#include "base/left_calls.h"

namespace weft::interpose {

// The number of generalised requests that the application has started and not freed.
inline std::atomic<int> generalised_requests{0};

// A generalised request of the application's: its callbacks, and its handle.
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

// The callbacks of one request in one call of the application's.
struct Callbacks {
  GeneralisedRequest request;
  bool queries = false, frees = false, cancels = false;  // what the library asked for
  int was_complete = 0;                                  // as cancel_fn is told
  int query_code = MPI_SUCCESS, free_code = MPI_SUCCESS, cancel_code = MPI_SUCCESS;
  MPI_Status status{};  // by query_fn

  void call();
  bool have_failed() const { return query_code || free_code || cancel_code; }
};

// While it lives, the callbacks that the library calls on this thread are put off.
class PutOff {
 public:
  explicit PutOff(PutOff* outer) : outer_(outer) { innermost_ = this; }
  ~PutOff() { innermost_ = outer_; }
  static PutOff* innermost() { return innermost_; }
  PutOff(const PutOff&) = delete;
  PutOff& operator=(const PutOff&) = delete;

  // The place to note what the library asks for; nullptr: nothing is put off on this thread.
  static Callbacks* of(const GeneralisedRequest& request);

  // Calls what has been put off in a call that returned `code`. How a library deals with the error
  // of a callback is its own affair: `report` makes a call like the application's over a request
  // whose callbacks return the same errors.
  using Report = int (*)(MPI_Request* request, MPI_Status* status);
  int call(int code, MPI_Status* status, Report report);
  // For a call over several requests. `indices` (`count` of them): where the k-th status belongs;
  // nullptr: status k is request k.
  int call(int code, std::span<const MPI_Request> requests, MPI_Status* statuses,
           const int* indices, int count);

 private:
  static inline constinit thread_local PutOff* innermost_ = nullptr;
  PutOff* const outer_;
  std::vector<Callbacks> callbacks_;
};

// Reports for completion calls of one request, and for those that leave it as it is.
int report_by_wait(MPI_Request* request, MPI_Status* status);
int report_by_status(MPI_Request* request, MPI_Status* status);

// A call that may complete, free or cancel one generalised request.
template <class Call>
int with_callbacks(MPI_Status* status, PutOff::Report report, Call call) {
  if (generalised_requests.load(std::memory_order_relaxed) == 0) [[likely]]
    return call();
  Lasting<PutOff> put_off(PutOff::innermost());
  const int code = call();
  return put_off->call(code, status, report);
}

// For arrays of requests. `completed`: what it has completed, known after the call.
template <class Call>
int with_callbacks(int count, const MPI_Request* requests, MPI_Status* statuses,
                   const int* completed, const int* indices, Call call) {
  if (generalised_requests.load(std::memory_order_relaxed) == 0 || count <= 0) [[likely]]
    return call();
  const std::vector<MPI_Request> before(requests, requests + count);
  Lasting<PutOff> put_off(PutOff::innermost());
  const int code = call();
  return put_off->call(code, before, statuses, indices, completed ? *completed : count);
}

}  // namespace weft::interpose
