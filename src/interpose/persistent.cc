// Persistent collectives: initialisation, the carrier of their request, MPI_Start and MPI_Startall.
#include "interpose/persistent.h"

#include <atomic>

#include "base/clock.h"
#include "interpose/generated/bodies.h"
#include "interpose/generated/library_calls.h"
#include "interpose/generated/next_calls.h"
#include "interpose/hooks.h"
#include "interpose/runtime.h"
#include "interpose/self_communicator.h"
#include "interpose/sites.h"
#include "interpose/submit.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {

int PersistentOperation::make_request() {
  static std::atomic<std::uint32_t> made{0};
  const MPI_Comm self = self_communicator();
  if (self == handles.comm_null) return MPI_ERR_NO_MEM;
  carrier_tag_ = Runtime::active()->tag_for(made.fetch_add(1));
  return library_calls.Recv_init(nullptr, 0, handles.byte, 0, carrier_tag_, self, &request_);
}

void PersistentOperation::free_request() {
  library_calls.Request_free(&request_);
}

[[gnu::always_inline]] inline bool PersistentOperation::restart(Runtime& runtime) {
  if (active()) [[unlikely]] {
    if (!done() || runtime.completions_are_ours()) return false;
    deactivate();  // another tool has completed it, past Weft
  }
  if (error_code() != MPI_SUCCESS) return false;
  if (started_before_) {
    if (!in_hand()) wait_done();  // the library may have seen the carrier's end a moment before
    rewind();
    alone_.rewind();
  }
  started_before_ = true;
  offered_ = false;
  if (node_) take_turn(node_->windows(), Ends::in_order, schedule());
  if (leaders_) lead(*leaders_);
  announced_ = false;
  carrier_started_ = false;
  active_.store(true, std::memory_order_release);
  const bool in_hand = stays_in_hand_ != InHand::no && runtime.completions_are_ours();
  in_hand_.store(in_hand, std::memory_order_relaxed);
  counted_ = !in_hand || stays_in_hand_ == InHand::until_needed;
  if (counted_) {
    runtime.requests.activated();
    bring_in();
  }
  return true;
}

void PersistentOperation::offer() {
  offered_ = true;
  Runtime::active()->progress.offer(shared_from_this());
}

bool PersistentOperation::withdraw() {
  offered_ = false;
  return Runtime::active()->progress.withdraw(*this);
}

void PersistentOperation::observe_end(AloneCall::State state) {
  if (state == AloneCall::State::in_different_calls) failed({"ranks take part in different calls"});
  if (Runtime::active()->observing()) times.finished = now_ns();
}

void PersistentOperation::hand_over() {
  if (!hold()) return;
  taken_over();
  if (!done()) Runtime::active()->progress.submit(shared_from_this(), false);
}

void PersistentOperation::taken_over() {
  if (!done() && alone_.begun()) leave_hand(alone_.steps_done());
  if (!counted_) Runtime::active()->requests.activated();
  counted_ = true;
  in_hand_.store(false, std::memory_order_relaxed);
}

void PersistentOperation::end_carrier() {
  const std::lock_guard lock(carrier_mutex_);
  MPI_Request carrier = request_;
  if (carrier_started_) library_calls.Wait(&carrier, MPI_STATUS_IGNORE);
}

void PersistentOperation::show_to_library() {
  const std::lock_guard lock(carrier_mutex_);
  if (carrier_started_) return;
  MPI_Request carrier = request_;
  library_calls.Start(&carrier);
  carrier_started_ = true;
  if (announced_) complete_carrier();
}

void PersistentOperation::announce() {
  const std::lock_guard lock(carrier_mutex_);
  announced_ = true;
  if (carrier_started_) complete_carrier();
}

// The receive has been posted, so the send ends at once.
void PersistentOperation::complete_carrier() {
  library_calls.Send(nullptr, 0, handles.byte, 0, carrier_tag_, self_communicator());
}

namespace {

inline int start_again(Runtime& runtime, PersistentOperation& operation) {
  const bool observing = runtime.observing();
  const std::int64_t entered = observing ? now_ns() : 0;
  if (!operation.restart(runtime)) [[unlikely]]
    return call_error_handler(operation, MPI_ERR_REQUEST);
  if (observing) operation.times = {entered, 0, 0};
  if (operation.in_hand()) [[likely]] {
    operation.begin_in_hand();
    return MPI_SUCCESS;
  }
  if (!runtime.completions_are_ours()) operation.show_to_library();
  if (holding.load(std::memory_order_relaxed) > 0 && hold_start(runtime, operation)) [[unlikely]]
    return MPI_SUCCESS;
  submit(runtime, operation.engine, runtime.requests.find(operation.request()));
  return MPI_SUCCESS;
}

// Among what the library has started may be transfers.
inline int started_by_library(int count, const MPI_Request* requests, int code) {
  Runtime* runtime = Runtime::active();
  if (known_transfers.load(std::memory_order_relaxed) > 0 && runtime && code == MPI_SUCCESS)
      [[unlikely]]
    runtime->transfers.started_again(count, requests);
  return code;
}

}  // namespace

namespace object {

int Start(bool nested, MPI_Request* request) {
  if (!nested) poll();
  Runtime* runtime = Runtime::active();
  auto* const ours = runtime ? runtime->requests.find_persistent(*request) : nullptr;
  return ours ? start_again(*runtime, *ours)
              : started_by_library(1, request, next_calls.Start(request));
}

int Startall(bool nested, int count, MPI_Request* requests) {
  Runtime* runtime = Runtime::active();
  if (!runtime || runtime->requests.held() == 0)
    return started_by_library(count, requests, next_calls.Startall(count, requests));
  if (!nested) poll();
  std::vector<PersistentOperation*> ours;
  std::vector<MPI_Request> others;
  for (int i = 0; i < count; ++i) {
    if (auto* operation = runtime->requests.find_persistent(requests[i]))
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
