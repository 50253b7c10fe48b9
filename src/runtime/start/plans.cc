// Implements the four steps from a call to its plan, and caches the plan.
#include "runtime/start/plans.h"

#include "runtime/call/device_memory.h"
#include "runtime/call/library_support.h"
#include "runtime/call/shape.h"
#include "runtime/job/epoch.h"
#include "runtime/node/reach.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/submit.h"
#include "runtime/start/choice.h"
#include "runtime/start/eligible.h"
#include "runtime/start/recent_plan_cache.h"
#include "runtime/start/schedules.h"
#include "runtime/trial/native_comparison.h"

namespace weft {
namespace {

// Returns whether later calls of this kind that Weft declines may go directly to the MPI library.
// They may if no summary or trace must see them, they need not be made in their non-blocking form
// (BlockingCall), and the library accepts the memory of their buffers.
bool may_pass_through(const Runtime& runtime, Kind kind) {
  return !runtime.observing() && !runtime.callers_only() &&
         (runtime.native() || !may_need_copies(kind));
}

// Returns whether ranks may use each other's buffers in place. They use this rank's buffers until
// it has signalled twice. With a persistent request that only the calling thread advances, the
// second signal may come too late, because that thread may be waiting for another rank.
bool may_be_direct(const Runtime& runtime, Use use) {
  return use != Use::persistent || !runtime.in_memory_only() || runtime.has_memory_thread();
}

// Returns whether only the fixed rule can decide about the call. This is so if no rank knows its
// total size, as in MPI_Ialltoallv, since such calls are neither compared with the MPI library nor
// learnt about here.
bool is_up_to_the_rule(const PlanRequest& asked, const Shape& shape) {
  return !agreed_bytes(shape) && !is_named(asked.runtime, asked.communicator, shape) &&
         engine_for(asked.runtime, asked.communicator) == Engine::automatic;
}

// Returns the result of the comparison with the MPI library for a blocking call in the node's
// memory, which says whether Weft carries it out.
NativeResult result_of_blocking(const PlanRequest& asked, const ScheduleResult& found,
                                const DirectPlan& direct) {
  const auto& [runtime, call, communicator, use] = asked;
  if (const Shape& shape = found.schedule->shape; is_up_to_the_rule(asked, shape))
    return {wins_as_request(runtime.library, shape, runtime.ranks_share_cores())};
  if (direct.by_kernel && one_copy_rule().asked_for) return {};
  const Schedule& schedule = direct.by_kernel ? *direct.schedule : *found.schedule;
  if (!may_be_compared(runtime, communicator, schedule.shape, found.kernel, bool{direct}))
    return {};
  const BlockingCall guard(call.form);
  let_worker_end(runtime, communicator);
  InternalCollective internal_collective(runtime, call.form, communicator);
  return native_result(runtime, internal_collective, call, schedule, found.kernel,
                       agreed_bytes(schedule.shape).value_or(0), LibraryForm::blocking);
}

// Returns whether the calling thread may carry the call out alone (inline). For this, all data must
// go through shared memory.
bool stays_inline(const Runtime& runtime, const Call& call, const ScheduleResult& found) {
  const Schedule& schedule = *found.schedule;
  return runtime.allows_inline_calls() && !call.has_arrays() && !schedule.shape.packed &&
         schedule.node_bytes > 0 && schedule.temp_bytes == 0 && !schedule.program.empty() &&
         !worth_the_thread(found.engine, schedule) && signals_at_once(schedule);
}

// The result of the last of the four steps from a call to its plan: how data are moved on this
// rank, and which threads carry the call out.
struct PlacementResult {
  std::optional<Reason> declined{};
  DirectPlan direct{};
  Data data = Data::by_messages;
  Carrier carrier = Carrier::executor;
  NativeWatch* watch = nullptr;
};

DirectPlan direct_plan(const PlanRequest& asked, const Shape& shape, const Choice& choice,
                       const ScheduleResult& found) {
  const bool in_order = asked.runtime.config.reproducible && reduces(shape.kind);
  DirectPlan direct;
  if (in_order || !may_be_direct(asked.runtime, asked.use)) return direct;
  direct.schedule = direct_for(asked.communicator, shape, choice, found.kernel);
  if (!direct) return direct;
  direct.by_kernel = one_copy() && one_copy_rule().takes(shape);
  direct.shows = BuffersToShow(*direct.schedule, direct.by_kernel);
  return direct;
}

PlacementResult memory_for(const PlanRequest& asked, const Eligible& eligible,
                           const ChoiceResult& chosen, const ScheduleResult& found) {
  const auto& [runtime, call, communicator, use] = asked;
  PlacementResult placed;
  placed.direct = direct_plan(asked, eligible.shape, chosen.choice, found);
  if (found.is_alone()) placed.data = Data::in_memory;
  if (found.is_alone() && !placed.direct && !devices_possible()) placed.data = Data::at_once;
  if (eligible.by_callers) placed.carrier = Carrier::callers;
  if (placed.data == Data::at_once && use == Use::request && stays_inline(runtime, call, found))
    placed.carrier = Carrier::inline_call;
  const bool is_tried = use == Use::blocking && chosen.by_rule &&
                        in_memory_only(runtime, communicator, use, call.kind);
  if (!is_tried) return placed;
  const NativeResult result = result_of_blocking(asked, found, placed.direct);
  placed.watch = result.watch;
  if (!result.is_won) placed.declined = Reason::library_wins;
  return placed;
}

Plan declined(const PlanRequest& asked, Reason reason, NativeWatch* watch = nullptr) {
  Plan plan;
  plan.communicator = &asked.communicator;
  plan.declined = reason;
  plan.watch = watch;
  return plan;
}

// Makes the plan, after engine and algorithm have been chosen.
Plan planned_by(const PlanRequest& asked, const Eligible& eligible, const ChoiceResult& chosen) {
  ScheduleResult found = schedule_for(asked, eligible, chosen);
  if (found.declined) return declined(asked, *found.declined);
  PlacementResult placed = memory_for(asked, eligible, chosen, found);
  if (placed.declined) return declined(asked, *placed.declined, placed.watch);
  Plan plan;
  plan.communicator = &asked.communicator;
  plan.schedule = std::move(found.schedule);
  plan.kernel = found.kernel;
  plan.engine = found.engine;
  plan.needs = found.needs;
  plan.data = placed.data;
  plan.carrier = placed.carrier;
  plan.watch = placed.watch;
  plan.direct = std::move(placed.direct);
  plan.bytes = local_bytes(eligible.shape);
  return plan;
}

Plan planned(const PlanRequest& asked) {
  const Eligible found = eligible(asked);
  if (found.declined) return declined(asked, *found.declined);
  const ChoiceResult chosen = chosen_for(asked, found);
  if (chosen.declined) return declined(asked, *chosen.declined);
  if (!chosen.is_learnt()) return planned_by(asked, found, chosen);
  Plan plan;
  plan.communicator = &asked.communicator;
  plan.variants = std::make_shared<Variants>(chosen.call_class, chosen.by_length);
  if (chosen.by_length) plan.length = CallsByLength::Length::class_of(local_bytes(found.shape));
  return plan;
}

Answer left_to_library(Reason reason, const Runtime& runtime, Kind kind, CacheScope alike,
                       std::uint64_t epoch, NativeWatch* watch = nullptr) {
  return {nullptr, epoch, may_pass_through(runtime, kind) ? alike : CacheScope::none, reason,
          watch};
}

Answer answer(const Plan& plan, const Runtime& runtime, Kind kind, CacheScope alike,
              std::uint64_t epoch) {
  if (plan.declined)
    return left_to_library(*plan.declined, runtime, kind, alike, epoch, plan.watch);
  return {&plan, epoch, alike, {}, plan.watch};
}

[[gnu::noinline]] Answer plan_made(Runtime& runtime, const Call& call, Use use) {
  const std::uint64_t began_at = epoch();
  Communicator* communicator = Communicators::own().find(call.comm);
  if (const auto reason = declined_at_once(runtime, communicator, call, use)) {
    const bool known = communicator || runtime.native();
    return left_to_library(*reason, runtime, call.kind, known ? CacheScope::all : CacheScope::none,
                           began_at);
  }
  const Plan made = planned({runtime, call, *communicator, use});
  // Two kinds of refusal are not cached. The MPI library's refusal of arguments may depend on
  // addresses, in which similar calls differ. Without a known topology, the lengths of arrays are
  // unknown.
  const bool alone = made.declined == Reason::arguments || made.declined == Reason::topology;
  const Plan* plan = alone ? RecentPlanCache::own().keep(made)
                           : RecentPlanCache::own().add(call, use, began_at, made);
  return answer(*plan, runtime, call.kind, alone ? CacheScope::none : CacheScope::same_arguments,
                began_at);
}

}  // namespace

Answer plan_for(Runtime& runtime, const Call& call, Use use) {
  const Plan* plan = RecentPlanCache::find_own(call, use);
  if (!plan) [[unlikely]]
    return plan_made(runtime, call, use);
  const bool is_of_any = plan->variants && plan->variants->by_length();
  const CacheScope scope = is_of_any ? CacheScope::all : CacheScope::same_arguments;
  return answer(*plan, runtime, call.kind, scope, epoch());
}

Answer leave_blocking(const Runtime& runtime, Kind kind) {
  if (!runtime.observing()) return left_to_library({}, runtime, kind, CacheScope::all, epoch());
  if (runtime.native()) return {.reason = Reason::engine_native};
  return {.reason = runtime.config.leaves(kind) ? Reason::kind_left : Reason::outside_memory};
}

const Plan& make_plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant) {
  const CallClass& call_class = first.variants->call_class();
  const PlanRequest asked{runtime, call, *first.communicator,
                          call_class.key.blocking ? Use::blocking : Use::request};
  Eligible eligible{.shape = shape_of(call, *first.communicator)};
  if (variant == joined_among(call_class.variants)) eligible.shape.edges = call_class.edges;
  const ChoiceResult chosen = chosen_at(asked, eligible, call_class, variant);
  auto plan = std::make_unique<Plan>(chosen.declined ? declined(asked, *chosen.declined)
                                                     : planned_by(asked, eligible, chosen));
  if (plan->declined == Reason::rule) plan->declined = Reason::learnt;
  return first.variants->keep(variant, std::move(plan));
}

}  // namespace weft
