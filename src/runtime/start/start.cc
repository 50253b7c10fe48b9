// Starts collectives according to their plans. A plan is made in four steps (plans.h): whether Weft
// can carry out the call, the choice of engine and algorithm, the schedule, and the memory. Each
// thread caches its plans.
#include "runtime/start/start.h"

#include "base/clock.h"
#include "runtime/call/device_drivers.h"
#include "runtime/call/library_support.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/submit.h"
#include "runtime/start/deferred.h"
#include "runtime/start/operations.h"
#include "runtime/start/plans.h"
#include "runtime/start/staged_calls.h"

namespace weft {
namespace {

// Makes the collective, and passes it to the thread that carries it out. Returns an MPI error code.
// in_flight: a counter that is decremented when the application completes the call; may be nullptr.
[[gnu::always_inline]] inline int start_operation(Runtime& runtime, CallId id, const Call& call,
                                                  const Plan& plan, std::atomic<int>* in_flight,
                                                  MPI_Request* request) {
  const std::int64_t entered = runtime.observing() ? now_ns() : 0;
  plan.communicator->retain_for_request();
  const int tag = next_tag(*plan.communicator);
  auto operation = single_operation<RequestedOperation>(id, call, plan, tag);
  const int code = operation->has_memory() ? operation->make_request() : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) return call_error_handler(*operation, code);
  *request = operation->request();
  if (in_flight) operation->count_in(*in_flight);
  Requests::own().add(operation);
  Requests::own().activated();
  runtime.summary.handled(id, plan.bytes, plan.schedule->node_bytes > 0);
  if (runtime.observing()) operation->times.started = entered;
  take_turn(*operation, plan, Ends::any_time);
  submit(runtime, plan.engine, std::move(operation));
  if (entered == 0) return MPI_SUCCESS;
  if (auto* track = runtime.application_track()) track->span(call_name(id), entered, now_ns());
  return MPI_SUCCESS;
}

[[gnu::always_inline]] inline bool start_inline(Runtime& runtime, CallId id, const Call& call,
                                                const Plan& plan, std::atomic<int>* in_flight,
                                                MPI_Request* request) {
  return plan.carrier == Carrier::inline_call &&
         InlineCall::own().start(runtime, id, call, plan, in_flight, request);
}

[[gnu::always_inline]] inline int start_by(Runtime& runtime, CallId id, const Call& call,
                                           const Plan& plan, std::atomic<int>* in_flight,
                                           MPI_Request* request) {
  if (start_inline(runtime, id, call, plan, in_flight, request)) return MPI_SUCCESS;
  return start_operation(runtime, id, call, plan, in_flight, request);
}

// Starts a collective about which engine auto learns and must record something.
[[gnu::noinline]] Started start_of_call_class(Runtime& runtime, CallId id, const Call& call,
                                              const Answer& answer, MPI_Request* request) {
  const Plan& plan = *answer.plan;
  CallClass& call_class = plan.variants->call_class();
  const auto variant = next_variant_now(runtime, id, *plan.communicator, call_class);
  if (!variant) return taken(defer(runtime, id, call, *plan.communicator, answer, request), answer);
  const Plan& chosen = plan_of(runtime, call, plan, *variant);
  if (!chosen.declined)
    return taken(start_by(runtime, id, call, chosen, &call_class.in_flight, request), answer);
  Started left = declined(*chosen.declined, answer);
  if (call_class.learner.is_watching()) {
    // The request may exist longer than the application's communicator.
    plan.communicator->retain_for_request();
    left.call_class = &call_class;
  }
  return left;
}

Reason reason_of(const Started& declined) {
  const bool of_call_class = declined.plan && declined.plan->variants;
  return of_call_class ? exact_reason(declined.reason, declined.plan->variants->call_class())
                       : declined.reason;
}

// Starts a collective whose plan the wrapper has not carried out itself.
[[gnu::always_inline]] inline Started start_by_plan(Runtime& runtime, CallId id, const Call& call,
                                                    const Plan* known, MPI_Request* request) {
  const Answer answer = known ? Answer{known} : plan_for(runtime, call, Use::request);
  const Plan* const plan = answer.plan;
  if (deferring.load(std::memory_order_acquire) > 0) [[unlikely]]
    if (const auto code = defer_behind_others(runtime, id, call, answer, request))
      return taken(*code, answer);
  if (!plan) return declined(answer);
  if (!plan->variants) {
    if (!known && start_inline(runtime, id, call, *plan, nullptr, request))
      return taken(MPI_SUCCESS, answer);
    return taken(start_operation(runtime, id, call, *plan, nullptr, request), answer);
  }
  CallClass& call_class = class_of_call(*plan);
  const auto variant = next_variant_at_once(runtime, *plan->communicator, call_class);
  if (!variant) [[unlikely]]
    return start_of_call_class(runtime, id, call, answer, request);
  const Plan& chosen = plan_of(runtime, call, *plan, *variant);
  const bool is_left = chosen.declined.has_value();
  plan->variants->was_left = is_left && !may_need_copies(call.kind);
  if (is_left) [[unlikely]]
    return declined(*chosen.declined, answer);
  return taken(start_by(runtime, id, call, chosen, &call_class.in_flight, request), answer);
}

// Lets the MPI library start a collective that Weft has declined on copies of its buffers, if it
// needs copies.
[[gnu::noinline]] void start_on_copies_if_needed(Runtime& runtime, CallId id, const Call& call,
                                                 MPI_Request* request, Started& started) {
  auto communicator = needs_copies_on(runtime, call);
  if (!communicator) return;
  if (runtime.summary.wanted()) runtime.summary.passed_on(id, reason_of(started));
  CallClass* const call_class = started.call_class;
  const int code = start_on_copies(runtime, id, call, std::move(communicator),
                                   call_class ? &call_class->in_flight : nullptr, request);
  started = taken(code, started);
}

[[gnu::always_inline]] inline Started start_or_leave(Runtime& runtime, CallId id, const Call& call,
                                                     const Plan* known, MPI_Request* request) {
  Started started = start_by_plan(runtime, id, call, known, request);
  if (!started.taken && devices_possible()) [[unlikely]]
    start_on_copies_if_needed(runtime, id, call, request, started);
  return started;
}

}  // namespace

Started start(CallId id, const Call& call, const Plan* known, MPI_Request* request) {
  Runtime* runtime = request ? Runtime::active() : nullptr;
  if (!runtime) [[unlikely]]
    return {};
  InlineCall::own().hand_over();
  // If the wrapper has passed the call's plan, it found the plan in its cache. It then needs only
  // the return code, and no answer that it could cache.
  if (known && start_inline(*runtime, id, call, *known, nullptr, request)) [[likely]]
    return taken(MPI_SUCCESS);
  return start_or_leave(*runtime, id, call, known, request);
}

void passed_on(CallId id, const Started& declined, const MPI_Request* request, int code) {
  Runtime* runtime = Runtime::active();
  if (!runtime || code != MPI_SUCCESS) return;
  if (runtime->summary.wanted()) runtime->summary.passed_on(id, reason_of(declined));
  // The fifth letter of the name is I in MPI_Iallreduce, but not in MPI_Allreduce_init (a
  // persistent initialisation).
  const bool non_blocking = call_name(id)[4] == 'I';
  CallClass* const call_class = declined.call_class;
  if ((!runtime->observing() && !call_class) || !non_blocking) return;
  NativeRequest record{id, {now_ns(), 0, 0}};
  if (call_class) {
    call_class->in_flight.fetch_add(1, std::memory_order_relaxed);
    record.communicator = declined.plan->communicator->shared_from_this();
    record.in_flight = &call_class->in_flight;
  }
  Requests::own().watch(*request, std::move(record));
}

}  // namespace weft
