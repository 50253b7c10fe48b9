// Carries out a short collective on the calling thread alone. Between the start call and the wait
// call that thread does nothing for it.
#include "runtime/request/inline_call.h"

#include <algorithm>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

constinit Immortal<InlineCall> own_inline_call;

bool signals_at_once(const Schedule& schedule) {
  using Kind = Instruction::Kind;
  const Program& program = schedule.program;
  const auto first_wait = std::ranges::find(program, Kind::wait, &Instruction::kind);
  return std::ranges::find(first_wait, program.end(), Kind::signal, &Instruction::kind) ==
         program.end();
}

int InlineCall::completed(void* carrier) {
  const std::unique_ptr<Carrier> done(static_cast<Carrier*>(carrier));
  return done->operation ? RequestedOperation::application_completed(done->operation) : MPI_SUCCESS;
}

bool InlineCall::make_carrier() {
  auto made = std::make_unique<Carrier>();
  if (make_generalised_request(&completed, made.get(), &made->request) != MPI_SUCCESS) return false;
  Requests::own().note(made->request, 1);
  carrier_ = std::move(made);
  return true;
}

bool InlineCall::start(Runtime& runtime, CallId id, const Call& call, const Recipe& recipe,
                       std::atomic<int>* in_flight, MPI_Request* request) {
  if (rests_ > 0) {
    --rests_;
    return false;
  }
  if (deferring.load(std::memory_order_acquire) > 0 || (!carrier_ && !make_carrier())) return false;
  if (schedule_ != recipe.schedule) schedule_ = recipe.schedule;
  id_ = id;
  call_ = call;
  communicator_ = recipe.communicator;
  communicator_->retain_for_request();
  number_ = communicator_->next_in_sequence();
  kernel_ = recipe.kernel;
  in_flight_ = in_flight;
  if (kernel_) computes_as_ = FloatingPoint::of_this_thread();
  communicator_->memory->node_buffers().next(Ends::any_time, *schedule_, &turn_);
  operands_ = operands_of(call_, kernel_, nullptr);
  operands_.use(turn_, *schedule_);
  alone_.emplace(*schedule_, operands_, turn_);
  // The start call does not look for signals of other ranks. A signal is a cache line, and reading
  // it too early delays the rank that writes it. If this rank is ahead, its shared buffer may still
  // be in use for a moment. Waiting for that takes less time than turning the call into an ordinary
  // collective.
  constexpr int kLooks = 200;
  for (int look = 0; look < kLooks; ++look) {
    state_ = alone_->progress(0);
    if (state_ != SharedMemoryCall::State::blocked || alone_->begun()) break;
  }
  any_ = true;
  *request = carrier_->request;
  if (!may_stay()) [[unlikely]] {
    become_operation();
    // rests_ is the number of calls that must start as ordinary collectives. This call could not be
    // carried out inline because another rank was late; the next calls may find it in time.
    rests_ = 0;
  }
  return true;
}

[[gnu::always_inline]] inline void InlineCall::progress(int polls) {
  if (kernel_) {
    const ComputesAs at_start(computes_as_);
    state_ = alone_->progress(polls);
  } else {
    state_ = alone_->progress(polls);
  }
}

[[gnu::noinline]] void InlineCall::wait_longer(Runtime& runtime) {
  const ComputesAs at_start(kernel_ ? computes_as_ : FloatingPoint::of_this_thread());
  state_ = wait_for_others(runtime.progress, *alone_);
}

[[gnu::always_inline]] inline int InlineCall::complete(MPI_Request* request, MPI_Status* status) {
  *request = handles.request_null;
  if (status != MPI_STATUS_IGNORE) set_status(status);
  if (state_ == SharedMemoryCall::State::over) [[likely]]
    return MPI_SUCCESS;
  communicator_->has_failed();
  library_calls.Comm_call_errhandler(communicator_->user, kCollectiveMismatch);
  return kCollectiveMismatch;
}

// Waits for the inline call. any_ is set to false first, so that a reduction operator that calls
// MPI does not make this call an ordinary collective. Other collectives that only application
// threads may advance are advanced, too, because a program may make nothing but inline calls
// meanwhile.
int InlineCall::wait(Runtime& runtime, MPI_Request* request, MPI_Status* status) {
  any_ = false;
  const int polls = runtime.progress.polls_inline();
  runtime.progress.advance_callers_own();
  if (state_ == SharedMemoryCall::State::blocked) {
    progress(polls);
    if (state_ == SharedMemoryCall::State::blocked) [[unlikely]]
      wait_longer(runtime);
  }
  return complete(request, status);
}

int InlineCall::test(Runtime& runtime, MPI_Request* request, int* flag, MPI_Status* status) {
  any_ = false;
  static_cast<void>(runtime.progress.polls_inline());
  runtime.progress.advance_callers_own();
  if (state_ == SharedMemoryCall::State::blocked) progress(1);
  *flag = state_ != SharedMemoryCall::State::blocked;
  if (*flag) return complete(request, status);
  MPI_Request carrier = carrier_->request;
  int ended = 0;  // stays 0; MPI_Test serves only to progress the MPI library
  library_calls.Test(&carrier, &ended, MPI_STATUS_IGNORE);
  any_ = true;
  return MPI_SUCCESS;
}

[[gnu::noinline]] void InlineCall::become_operation() {
  Runtime& runtime = *Runtime::active();
  const ComputesAs at_start(kernel_ ? computes_as_ : FloatingPoint::of_this_thread());
  any_ = false;
  rests_ = kRest;
  auto operation =
      std::make_shared<RequestedOperation>(id_, call_, communicator_->shared_from_this(), schedule_,
                                           kernel_, communicator_->tags.of_single(number_));
  operation->set_in_memory(true);
  Carrier* const carrier = carrier_.release();  // the request's callback deletes it
  carrier->operation = operation.get();
  operation->take_over(carrier->request, turn_, *alone_, state_);
  if (in_flight_) operation->count_in(*in_flight_);
  Requests::own().add(operation);
  Requests::own().note(carrier->request, -1);
  Requests::own().activated();
  if (!operation->advance()) runtime.progress.submit(std::move(operation), false);
}

void InlineCall::end() {
  hand_over();
  if (!carrier_) return;
  MPI_Request request = carrier_.release()->request;
  Requests::own().note(request, -1);
  library_calls.Grequest_complete(request);
  library_calls.Wait(&request, MPI_STATUS_IGNORE);
}

}  // namespace weft
