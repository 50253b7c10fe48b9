// Implements the collectives behind the application's requests, and the table by which completion
// calls find them. For a non-blocking collective, the start call makes a generalised request. The
// thread that carries out the last round marks it as complete. The MPI library frees it when the
// application completes it.
#include "runtime/request/requests.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/clock.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/call/library_support.h"
#include "runtime/job/runtime.h"

namespace weft {

constinit Immortal<Requests> own_requests;

void set_status(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  library_calls.Status_set_elements(status, handles.byte, 0);
  library_calls.Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
}

namespace {

int query_status(void*, MPI_Status* status) {
  set_status(status);
  return MPI_SUCCESS;
}

int refuse_cancel(void*, int) {
  return MPI_SUCCESS;
}

}  // namespace

CollectiveOperation::CollectiveOperation(CallId id, const Call& call,
                                         std::shared_ptr<Communicator> communicator,
                                         std::shared_ptr<const Schedule> schedule, Kernel kernel,
                                         int tag, std::shared_ptr<const Schedule> direct,
                                         Begins begins)
    : Operation(std::move(schedule), transport_, &operands_, &turn_),
      id_(id),
      call_(call),
      communicator_(std::move(communicator)),
      temp_(std::max(this->schedule().temp_bytes, direct ? direct->temp_bytes : 0)),
      operands_(operands_of(call, kernel, temp_.data())),
      transport_(call_, this->schedule(), operands_, communicator_->route, tag) {
  if (direct) try_first(std::move(direct));
  if (this->schedule().shape.packed || devices_possible()) make_copies(begins);
  const Shape& shape = this->schedule().shape;
  if (call.sendtypes || call.recvtypes || is_by_library())
    keep_arrays(&call_, static_cast<int>(shape.send_blocks.size()),
                static_cast<int>(shape.recv_blocks.size()), &arrays_);
}

void CollectiveOperation::make_copies(Begins begins) {
  if (is_by_library() && library_takes_device_memory(schedule().shape.kind)) return;
  copies_ = CallCopies::of(call_, schedule().shape, *communicator_);
  if (!copies_ || !copies_->there()) return;
  call_ = copies_->on_copies(call_);
  operands_.base = operands_of(call_, operands_.reduce, temp_.data()).base;
  if (may_move_in_pieces()) {
    in_pieces_ =
        std::make_unique<StagedTransport>(transport_, &operands_, schedule(), copies_->described());
    leave_all_to(*in_pieces_);
  }
  if (begins == Begins::at_once) bring_in_copies();
}

// Returns whether the copies of the buffers may move in pieces. A collective of the MPI library
// needs all data at once, and so do other ranks that use this rank's buffers in place.
bool CollectiveOperation::may_move_in_pieces() const {
  return copies_->may_move_in_pieces() && StagedBuffers::are_long(schedule().shape) &&
         !is_by_library() && !schedule().is_direct;
}

void CollectiveOperation::bring_in_copies() {
  if (!in_pieces_) return copies_->bring_in();
  copies_->begin();
  in_pieces_->begin();
}

// Ends the copies of the buffers, and returns their MPI error code.
[[gnu::noinline]] int CollectiveOperation::end_copies(bool has_succeeded) {
  if (in_pieces_) in_pieces_->end(has_succeeded);
  if (!has_succeeded) return MPI_SUCCESS;
  return in_pieces_ ? copies_->end() : copies_->take_out();
}

void CollectiveOperation::lead(Leaders& leaders) {
  if (schedule().leader_calls > 0) transport_.lead(leaders);
}

std::optional<Work> CollectiveOperation::work() const {
  const auto left = in_pieces_ ? std::nullopt : rest();
  return left ? work_of(schedule(), operands_, turn_, *left) : std::nullopt;
}

bool CollectiveOperation::uses_type(MPI_Datatype type) const {
  if (call_.sendtype == type || call_.recvtype == type) return true;
  const Shape& shape = schedule().shape;
  const auto among = [&](const MPI_Datatype* types, std::size_t count) {
    return types && std::find(types, types + count, type) != types + count;
  };
  return among(call_.sendtypes, shape.send_blocks.size()) ||
         among(call_.recvtypes, shape.recv_blocks.size());
}

void CollectiveOperation::keep(std::shared_ptr<void> resource) {
  const std::lock_guard lock(kept_mutex_);
  if (!kept_closed_) kept_.push_back(std::move(resource));
}

void CollectiveOperation::finished(const Error* error) {
  if (copies_) error_code_ = end_copies(!error);
  if (error) failed(*error);
  Runtime* runtime = Runtime::active();
  if (runtime && runtime->observing()) times.finished = now_ns();
  if (runtime && !error && was_direct()) runtime->summary.direct(id_);
  if (one_shot()) release_kept();
  announce();
}

[[gnu::noinline]] void CollectiveOperation::failed(const Error& error) {
  error_code_ = error.mpi_code != 0 ? error.mpi_code : kCollectiveMismatch;
  temp_.abandon();
  communicator_->has_failed();
  transport_.give_up_leading();
}

[[gnu::noinline]] void CollectiveOperation::release_kept() {
  std::vector<std::shared_ptr<void>> kept;
  const std::lock_guard lock(kept_mutex_);
  kept.swap(kept_);
  kept_closed_ = true;
}

int RequestedOperation::application_completed(void* state) {
  auto* const operation = static_cast<RequestedOperation*>(state);
  if (operation->in_flight_) operation->in_flight_->fetch_sub(1, std::memory_order_release);
  if (Runtime::active()) {
    Requests::own().deactivated();
    Requests::own().remove(operation->request());  // may destroy the object
  }
  return MPI_SUCCESS;
}

int make_generalised_request(int (*completed)(void*), void* state, MPI_Request* request) {
  return library_calls.Grequest_start(query_status, completed, refuse_cancel, state, request);
}

int RequestedOperation::make_request() {
  return library_calls.Grequest_start(query_status, application_completed, refuse_cancel, this,
                                      &request_);
}

void RequestedOperation::take_over(MPI_Request request, const NodeBufferUse& turn,
                                   const SharedMemoryCall& call, SharedMemoryCall::State state) {
  request_ = request;
  use_turn(turn);
  if (state == SharedMemoryCall::State::in_different_calls)
    failed({"ranks take part in different calls"});
  if (state != SharedMemoryCall::State::blocked)
    is_over();
  else if (call.begun())
    leave_hand(call.steps_done());
}

void RequestedOperation::announce() {
  library_calls.Grequest_complete(request_);
}

int call_error_handler(CollectiveOperation& operation, int code) {
  operation.take_exception().throw_on();
  const bool freed = operation.communicator().freed.load();
  library_calls.Comm_call_errhandler(freed ? handles.comm_world : operation.communicator().user,
                                     code);
  return code;
}

void Requests::add(std::shared_ptr<CollectiveOperation> operation) {
  const MPI_Request request = operation->request();
  const std::lock_guard lock(mutex_);
  operations_[request] = std::move(operation);
  count(request, 1);
}

void Requests::remove(MPI_Request request) {
  // Declared before the lock, so that it is destroyed after the lock has been released.
  std::shared_ptr<CollectiveOperation> removed;
  const std::lock_guard lock(mutex_);
  const auto it = operations_.find(request);
  if (it == operations_.end()) return;
  removed = std::move(it->second);
  operations_.erase(it);
  if (removed->persistent()) removals_.fetch_add(1, std::memory_order_release);
  count(request, -1);
}

std::shared_ptr<CollectiveOperation> Requests::find(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto it = operations_.find(request);
  return it == operations_.end() ? nullptr : it->second;
}

constinit thread_local Requests::Found Requests::found_last;

PersistentOperation* Requests::find_again(MPI_Request request) {
  static thread_local std::array<Found, 8> recent;
  // In MPI libraries a handle is a small integer or an address.
  const std::size_t hash = std::hash<MPI_Request>{}(request);
  Found& found = recent[(hash ^ hash >> 6) % recent.size()];
  if (const auto now = removals(); found.removals != now || found.request != request) {
    const auto operation = find(request);
    auto* const persistent = operation ? operation->persistent() : nullptr;
    if (!persistent) return nullptr;
    found = {now, request, persistent};
  }
  found_last = found;
  return found.operation;
}

std::vector<std::shared_ptr<CollectiveOperation>> Requests::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CollectiveOperation>> operations;
  for (const auto& [request, operation] : operations_) operations.push_back(operation);
  return operations;
}

void Requests::watch(MPI_Request request, NativeRequest record) {
  // An older record of this handle. There is one if several requests have the same handle, or if
  // another PMPI tool has completed a request without Weft's knowledge.
  NativeRequest before;
  unwatch(request, &before);
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
  if (record->in_flight) record->in_flight->fetch_sub(1, std::memory_order_release);
  return true;
}

bool Requests::is_watched(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  return watched_.contains(request);
}

void Requests::waited_for(MPI_Request request, std::int64_t began_ns, std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  const auto it = watched_.find(request);
  if (it == watched_.end()) return;
  Times& times = it->second.times;
  if (times.waiting_since == 0) times.waiting_since = began_ns;
  times.waited += ns;
}

}  // namespace weft
