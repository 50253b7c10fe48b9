// Carries out a blocking collective: in shared memory alone, by messages, or by an engine and
// algorithm that engine auto is trying.
#include "runtime/start/blocking.h"

#include <algorithm>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "engine/shared_memory_call.h"
#include "library/generated/library_calls.h"
#include "runtime/call/call_copies.h"
#include "runtime/job/epoch.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/submit.h"
#include "runtime/request/watchdog.h"
#include "runtime/start/deferred.h"
#include "runtime/start/operations.h"
#include "runtime/start/plans.h"
#include "runtime/start/staged_calls.h"

namespace weft {
namespace {

// Reserves a turn, the next use of the node's shared buffers, for a collective whose whole state is
// on the stack. Returns an empty turn if the schedule does not use these buffers.
inline NodeBufferUse turn_in_order(const Plan& plan, const Schedule& first) {
  if (first.node_bytes == 0) return {};
  return plan.communicator->memory->node_buffers().next(Ends::in_order, first);
}

int failed(const Call& call, int code) {
  if (Communicator* known = Communicators::own().find(call.comm)) known->has_failed();
  library_calls.Comm_call_errhandler(call.comm, code);
  return code;
}

// Completes the collective, and advances other collectives meanwhile. Returns an MPI error code.
int drive(Runtime& runtime, const Call& call, Execution& execution) {
  Result<bool> done = false;
  runtime.progress.drive_inline([&](int polls) {
    done = execution.advance(polls);
    return !done || *done;
  });
  return done ? MPI_SUCCESS : failed(call, kCollectiveMismatch);
}

// Carries out a collective in shared memory alone. Its whole state is on the stack. Returns an MPI
// error code.
[[gnu::always_inline]] inline int carry_out_in_memory(Runtime& runtime, const Call& call,
                                                      const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  const TempBuffer temp(schedule.temp_bytes);
  if (!temp.there()) return failed(call, MPI_ERR_NO_MEM);
  const NodeBufferUse turn = turn_in_order(plan, schedule);
  Operands operands = operands_of(call, plan.kernel, temp.data());
  operands.use(turn, schedule);
  const bool done = carry_out_in_shared_memory(runtime.progress, schedule, operands, turn);
  return done ? MPI_SUCCESS : failed(call, kCollectiveMismatch);
}

// Carries out a collective in shared memory. If all ranks' buffers are accessible, they are used in
// place without a copy. Returns an MPI error code.
[[gnu::noinline]] int try_direct_in_memory(Runtime& runtime, CallId id, const Call& call,
                                           const Plan& plan) {
  const TempBuffer temp(std::max(plan.schedule->temp_bytes, plan.direct.schedule->temp_bytes));
  if (!temp.there()) return failed(call, MPI_ERR_NO_MEM);
  const NodeBufferUse turn = turn_in_order(plan, *plan.direct.schedule);
  Operands operands = operands_of(call, plan.kernel, temp.data());
  operands.use(turn, *plan.schedule);
  operands.peers = &plan.communicator->memory->peers();
  operands.peers->begin(shown_buffers(plan, call));
  Execution execution(*plan.schedule, nullptr, &operands, &turn);
  execution.try_first(*plan.direct.schedule);
  const int code = drive(runtime, call, execution);
  if (code == MPI_SUCCESS && execution.was_direct()) runtime.summary.direct(id);
  return code;
}

// Carries out a blocking collective by messages, one in which the MPI library must pack or reduce
// the data, or one whose data come from GPU memory in pieces. Returns an MPI error code.
[[gnu::noinline]] int carry_out_as_operation(Runtime& runtime, CallId id, const Call& call,
                                             const Plan& plan, std::uint32_t number) {
  auto operation = single_operation<CollectiveOperation>(id, call, plan,
                                                         plan.communicator->tags.of_single(number));
  if (!operation->has_memory()) return call_error_handler(*operation, MPI_ERR_NO_MEM);
  take_turn(*operation, plan, Ends::in_order);
  carry_to_its_end(runtime, operation);
  return operation->claim_error() ? call_error_handler(*operation, operation->error_code())
                                  : MPI_SUCCESS;
}

// Carries out a collective in shared memory. Data with gaps, and data in GPU memory that do not
// move in pieces, are first copied to buffers that shared memory algorithms can use. Returns an MPI
// error code.
int carry_out_within_reach(Runtime& runtime, CallId id, const Call& call, const Plan& plan) {
  const auto copies = CallCopies::of(call, plan.schedule->shape, *plan.communicator);
  if (copies && !copies->there()) return failed(call, MPI_ERR_NO_MEM);
  if (copies) copies->bring_in();
  const Call within_reach = copies ? copies->on_copies(call) : call;
  const int code = plan.direct ? try_direct_in_memory(runtime, id, within_reach, plan)
                               : carry_out_in_memory(runtime, within_reach, plan);
  if (!copies || code != MPI_SUCCESS) return code;
  const int taken_out = copies->take_out();
  return taken_out == MPI_SUCCESS ? code : failed(call, taken_out);
}

// Returns whether the call's data lie in GPU memory, and may come from there in pieces.
bool moves_in_pieces(const Call& call, const Plan& plan) {
  const Shape& shape = plan.schedule->shape;
  return devices_possible() && !shape.packed && StagedBuffers::are_long(shape) &&
         StagedBuffers::are_needed(call, shape);
}

// Carries out a collective that the summary, trace or watchdog must see, or that needs more than
// shared memory. Returns an MPI error code.
[[gnu::noinline]] int carry_out_in_any_variant(Runtime& runtime, CallId id, const Call& call,
                                               const Plan& plan) {
  const WatchedCall watched(id);
  const std::int64_t entered = runtime.observing() ? now_ns() : 0;
  runtime.summary.handled(id, plan.bytes, plan.schedule->node_bytes > 0);
  const std::uint32_t number = plan.communicator->next_in_sequence();
  int code;
  if (!plan.is_alone() || moves_in_pieces(call, plan))
    code = carry_out_as_operation(runtime, id, call, plan, number);
  else
    code = carry_out_within_reach(runtime, id, call, plan);
  if (entered == 0) return code;
  const std::int64_t ended = now_ns();
  runtime.summary.spent(id, ended - entered);
  if (auto* track = runtime.application_track()) track->span(call_name(id), entered, ended);
  return code;
}

// Carries out a collective in shared memory that no report must see. Returns an MPI error code.
[[gnu::always_inline]] inline int carry_out_at_once(Runtime& runtime, const Call& call,
                                                    const Plan& plan) {
  plan.communicator->next_in_sequence();
  return carry_out_in_memory(runtime, call, plan);
}

// Carries out a blocking collective about which engine auto learns. The call takes the variant
// (engine and algorithm) that is next in its class of similar calls.
[[gnu::noinline]] Started carry_out_of_call_class(Runtime& runtime, CallId id, const Call& call,
                                                  const Answer& answer, bool looked_at) {
  const Plan& plan = *answer.plan;
  CallClass& call_class = class_of_call(plan);
  const int variant = next_variant_in_call(runtime, id, *plan.communicator, call_class);
  const Plan& chosen = plan_of(runtime, call, plan, variant);
  const bool is_timed = call_class.learner.wants_own_time();
  if (chosen.declined) {
    runtime.summary.passed_on(id, exact_reason(*chosen.declined, call_class));
    Started left = declined(*chosen.declined, answer);
    if (is_timed) left.call_class = &call_class;
    return left;
  }
  const std::int64_t began_ns = is_timed ? now_ns() : 0;
  const bool at_once = chosen.data == Data::at_once && !looked_at;
  const int code = at_once ? carry_out_at_once(runtime, call, chosen)
                           : carry_out_in_any_variant(runtime, id, call, chosen);
  if (is_timed) call_class.learner.took(now_ns() - began_ns);
  return taken(code, answer);
}

[[gnu::noinline]] Started leave_to_library(Runtime& runtime, CallId id, const Call& call,
                                           const Answer& answer) {
  runtime.summary.passed_on(id, answer.reason);
  finish_before_blocking(runtime, call.comm);
  return declined(answer);
}

// Returns the plan for a call that is not in this thread's table of cached calls.
[[gnu::noinline]] Answer plan_for_blocking(Runtime& runtime, const Call& call) {
  if (deferring.load() > 0) release_deferred(runtime, call.comm);
  return plan_for(runtime, call, Use::blocking);
}

[[gnu::always_inline]] inline Started carry_out_by(Runtime& runtime, CallId id, const Call& call,
                                                   const Answer& answer) {
  const Plan* const plan = answer.plan;
  if (!plan) return leave_to_library(runtime, id, call, answer);
  const bool looked_at = runtime.observing() || watching.load(std::memory_order_relaxed);
  if (plan->data == Data::at_once && !looked_at)
    return taken(carry_out_at_once(runtime, call, *plan), answer);
  if (plan->variants) return carry_out_of_call_class(runtime, id, call, answer, looked_at);
  return taken(carry_out_in_any_variant(runtime, id, call, *plan), answer);
}

// Carries out a call at which something must be done about the result of the comparison between
// Weft's variant and the library's.
[[gnu::noinline]] Started carry_out_at_step(Runtime& runtime, CallId id, const Call& call,
                                            const Answer& answer) {
  using Step = NativeWatch::Step;
  const Step step = answer.watch->next_step();
  if (step == Step::compare) {
    begin_epoch();  // the plans of all such calls rest on the earlier result
    return carry_out_by(runtime, id, call, plan_for_blocking(runtime, call));
  }
  const std::int64_t began_ns = step == Step::time ? now_ns() : 0;
  Started started = carry_out_by(runtime, id, call, answer);
  if (step == Step::time && started.taken) answer.watch->took(now_ns() - began_ns);
  started.is_watched = step == Step::time && !started.taken;
  return started;
}

// Carries out a call whose plan must be looked up.
[[gnu::noinline]] Started carry_out_unknown(Runtime& runtime, CallId id, const Call& call) {
  const Answer answer = plan_for_blocking(runtime, call);
  if (answer.watch && answer.watch->counts_to_step())
    return carry_out_at_step(runtime, id, call, answer);
  return carry_out_by(runtime, id, call, answer);
}

[[gnu::always_inline]] inline Started carry_out_by_plan(Runtime& runtime, CallId id,
                                                        const Call& call, const Plan* known) {
  if (!blocking_taken.load(std::memory_order_acquire)) [[unlikely]]
    return leave_to_library(runtime, id, call, leave_blocking(runtime, call.kind));
  InlineCall::own().hand_over();
  if (!known) [[unlikely]]
    return carry_out_unknown(runtime, id, call);
  NativeWatch* const watch = known->watch;
  const bool is_step = watch && watch->counts_to_step();
  const Answer answer{.plan = known, .watch = watch};
  if (is_step) [[unlikely]]
    return carry_out_at_step(runtime, id, call, answer);
  return carry_out_by(runtime, id, call, answer);
}

// Lets the MPI library carry out a collective that Weft has declined on copies of its buffers, if
// it needs copies.
[[gnu::noinline]] void carry_out_on_copies_if_needed(const Runtime& runtime, CallId id,
                                                     const Call& call, Started& started) {
  const auto communicator = needs_copies_on(runtime, call);
  if (!communicator) return;
  const DeclinedCall timed(started);
  started = taken(carry_out_on_copies(id, call, *communicator), started);
}

[[gnu::always_inline]] inline Started carry_out_or_leave(Runtime& runtime, CallId id,
                                                         const Call& call, const Plan* known) {
  Started started = carry_out_by_plan(runtime, id, call, known);
  if (!started.taken && devices_possible()) [[unlikely]]
    carry_out_on_copies_if_needed(runtime, id, call, started);
  return started;
}

}  // namespace

Started carry_out(CallId id, const Call& call, const Plan* known) {
  Runtime* runtime = Runtime::active();
  if (!runtime) return {};
  return carry_out_or_leave(*runtime, id, call, known);
}

void DeclinedCall::begin() {
  began_ns_ = now_ns();
}

void DeclinedCall::end() const {
  const std::int64_t took_ns = now_ns() - began_ns_;
  if (call_class_) call_class_->learner.took(took_ns);
  if (watch_) watch_->took(took_ns);
}

}  // namespace weft
