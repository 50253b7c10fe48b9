// Implements persistent collectives: their request in the MPI library (the carrier), their start,
// and their completion.
#include "runtime/request/persistent.h"

#include <atomic>

#include "base/clock.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/comm/self_communicator.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

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

void PersistentOperation::offer() {
  offered_ = true;
  Runtime::active()->progress.offer(shared_from_this());
}

bool PersistentOperation::withdraw() {
  offered_ = false;
  return Runtime::active()->progress.withdraw(*this);
}

void PersistentOperation::observe_end(SharedMemoryCall::State state) {
  if (state == SharedMemoryCall::State::in_different_calls)
    failed({"ranks take part in different calls"});
  if (Runtime::active()->observing()) times.finished = now_ns();
}

void PersistentOperation::hand_over() {
  if (!claim()) return;
  taken_over();
  if (!done()) Runtime::active()->progress.submit(shared_from_this(), false);
}

void PersistentOperation::taken_over() {
  if (!done() && alone_.begun()) leave_hand(alone_.steps_done());
  if (!counted_) Requests::own().activated();
  counted_ = true;
  is_inline_.store(false, std::memory_order_relaxed);
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

// Completes the carrier, the MPI library's request for this collective. It is a receive that is
// already posted, so that this send completes at once.
void PersistentOperation::complete_carrier() {
  library_calls.Send(nullptr, 0, handles.byte, 0, carrier_tag_, self_communicator());
}

}  // namespace weft
