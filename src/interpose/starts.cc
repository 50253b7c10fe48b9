// Implements MPI_Start and MPI_Startall.
#include <vector>

#include "base/clock.h"
#include "interpose/generated/bodies.h"
#include "interpose/hooks.h"
#include "library/generated/next_calls.h"
#include "runtime/job/runtime.h"
#include "runtime/request/persistent.h"
#include "runtime/request/requests.h"
#include "runtime/request/submit.h"
#include "runtime/request/transfers.h"
#include "runtime/start/deferred.h"

namespace weft::interpose {
namespace {

inline int start_again(Runtime& runtime, PersistentOperation& operation) {
  const bool observing = runtime.observing();
  const std::int64_t entered = observing ? now_ns() : 0;
  if (!operation.restart(runtime)) [[unlikely]]
    return call_error_handler(operation, MPI_ERR_REQUEST);
  if (observing) operation.times = {entered, 0, 0};
  if (operation.is_inline()) [[likely]] {
    operation.begin_inline();
    return MPI_SUCCESS;
  }
  if (!runtime.completions_are_ours()) operation.show_to_library();
  if (deferring.load(std::memory_order_relaxed) > 0 && defer_start(runtime, operation)) [[unlikely]]
    return MPI_SUCCESS;
  submit(runtime, operation.engine, Requests::own().find(operation.request()));
  return MPI_SUCCESS;
}

// Notes that the MPI library has started these persistent requests, with result `code`, so that
// Weft's progress thread progresses the large messages among them.
inline int started_by_library(int count, const MPI_Request* requests, int code) {
  Runtime* runtime = Runtime::active();
  if (known_transfers.load(std::memory_order_relaxed) > 0 && runtime && code == MPI_SUCCESS)
      [[unlikely]]
    Transfers::own().started_again(count, requests);
  return code;
}

}  // namespace

namespace object {

int Start(bool nested, MPI_Request* request) {
  if (!nested) poll();
  Runtime* runtime = Runtime::active();
  auto* const ours = runtime ? Requests::own().find_persistent(*request) : nullptr;
  return ours ? start_again(*runtime, *ours)
              : started_by_library(1, request, next_calls.Start(request));
}

int Startall(bool nested, int count, MPI_Request* requests) {
  Runtime* runtime = Runtime::active();
  if (!runtime || Requests::own().existing() == 0)
    return started_by_library(count, requests, next_calls.Startall(count, requests));
  if (!nested) poll();
  std::vector<PersistentOperation*> ours;
  std::vector<MPI_Request> others;
  for (int i = 0; i < count; ++i) {
    if (auto* operation = Requests::own().find_persistent(requests[i]))
      ours.push_back(operation);
    else
      others.push_back(requests[i]);
  }
  const auto of_library = static_cast<int>(others.size());
  int code = MPI_SUCCESS;
  if (!others.empty() || ours.empty())
    code = started_by_library(of_library, others.data(),
                              next_calls.Startall(of_library, others.data()));
  for (auto* operation : ours)
    if (code == MPI_SUCCESS) code = start_again(*runtime, *operation);
  return code;
}

}  // namespace object
}  // namespace weft::interpose
