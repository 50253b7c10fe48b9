// The life of a generalised request: made at the start, completed by whoever advances the last
// round, freed by the MPI library when the application completes it.
#include "interpose/requests.h"

#include "base/clock.h"
#include "interpose/generated/library_calls.h"
#include "interpose/runtime.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

// Like the statuses of the library's own non-blocking collectives: nothing received, no source.
int query_status(void*, MPI_Status* status) {
  library_calls.Status_set_elements(status, handles.byte, 0);
  library_calls.Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int application_completed(void* state) {
  auto* operation = static_cast<CollectiveOperation*>(state);
  if (Runtime* runtime = Runtime::active()) runtime->requests.remove(operation->request());
  operation->forget_self();
  return MPI_SUCCESS;
}

int refuse_cancel(void*, int) {
  return MPI_SUCCESS;
}

}  // namespace

CollectiveOperation::CollectiveOperation(CallId id, const Call& call,
                                         std::shared_ptr<Communicator> communicator,
                                         std::shared_ptr<const Schedule> schedule, int tag)
    : Operation(schedule, transport_),
      id_(id),
      call_(call),
      communicator_(std::move(communicator)),
      transport_(call_, *schedule, communicator_->shadow, tag) {}

int CollectiveOperation::make_request(std::shared_ptr<CollectiveOperation> self) {
  const int code = library_calls.Grequest_start(query_status, application_completed, refuse_cancel,
                                                this, &request_);
  if (code == MPI_SUCCESS) self_ = std::move(self);
  return code;
}

void CollectiveOperation::keep(std::shared_ptr<void> resource) {
  const std::lock_guard lock(kept_mutex_);
  if (!kept_closed_) kept_.push_back(std::move(resource));
}

void CollectiveOperation::finished(const Error* error) {
  if (error) error_code_ = error->mpi_code != 0 ? error->mpi_code : MPI_ERR_INTERN;
  Runtime* runtime = Runtime::active();
  if (runtime && runtime->observing()) times.finished = now_ns();
  std::vector<std::shared_ptr<void>> kept;
  {
    const std::lock_guard lock(kept_mutex_);
    kept.swap(kept_);
    kept_closed_ = true;
  }
  kept.clear();
  library_calls.Grequest_complete(request_);
}

void Requests::add(std::shared_ptr<CollectiveOperation> operation) {
  const MPI_Request request = operation->request();
  const std::lock_guard lock(mutex_);
  operations_[request] = std::move(operation);
  held_.fetch_add(1);
}

void Requests::remove(MPI_Request request) {
  std::shared_ptr<CollectiveOperation> removed;  // ends after the lock
  const std::lock_guard lock(mutex_);
  const auto it = operations_.find(request);
  if (it == operations_.end()) return;
  removed = std::move(it->second);
  operations_.erase(it);
  held_.fetch_sub(1);
}

std::shared_ptr<CollectiveOperation> Requests::find(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto it = operations_.find(request);
  return it == operations_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<CollectiveOperation>> Requests::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CollectiveOperation>> operations;
  for (const auto& [request, operation] : operations_) operations.push_back(operation);
  return operations;
}

void Requests::watch(MPI_Request request, NativeRequest record) {
  const std::lock_guard lock(mutex_);
  if (watched_.insert_or_assign(request, record).second) watched_count_.fetch_add(1);
}

bool Requests::unwatch(MPI_Request request, NativeRequest* record) {
  const std::lock_guard lock(mutex_);
  const auto it = watched_.find(request);
  if (it == watched_.end()) return false;
  *record = it->second;
  watched_.erase(it);
  watched_count_.fetch_sub(1);
  return true;
}

}  // namespace weft::interpose
