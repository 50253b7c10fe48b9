// Chooses engine and algorithm for a call.
#include "runtime/start/plans.h"

#include <algorithm>
#include <bit>

#include "base/this_thread.h"
#include "coll/algorithm.h"
#include "library/handles.h"
#include "library/search.h"
#include "library/session_communicators.h"
#include "runtime/adaptive/sites.h"
#include "runtime/call/device_memory.h"
#include "runtime/call/operator_check.h"
#include "runtime/call/packed_data.h"
#include "runtime/call/shape.h"
#include "runtime/job/epoch.h"
#include "runtime/request/blocking_call.h"
#include "runtime/start/held.h"
#include "runtime/start/known_calls.h"
#include "runtime/start/recent_plans.h"
#include "runtime/start/schedules.h"
#include "runtime/trial/contest.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

// Is set when a call is declined.
thread_local Reason declined_for = Reason::engine_native;

// Returns whether calls that are left to the library may be passed on directly: nobody observes
// them, and they need no other form, as where only callers progress operations (BlockingCall).
bool may_go_straight(const Runtime& runtime) {
  return !runtime.observing() && !runtime.callers_only();
}

// Whole collectives of the library's must be started in the same order on all ranks, which
// persistent ones need not be.
Engine possible_engine(const Runtime& runtime, Engine asked, Use use, bool by_callers) {
  const bool by_caller = use == Use::blocking || runtime.in_memory_only() || by_callers;
  if (by_caller) return Engine::function;
  const bool whole = asked == Engine::tcc || asked == Engine::assist;
  return whole && use == Use::persistent ? Engine::thread : asked;
}

Choice choice_for(const Runtime& runtime, const Communicator& communicator, Use use,
                  const Shape& shape, bool by_callers) {
  const Engine asked = possible_engine(runtime, runtime.engine_for(communicator), use, by_callers);
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  const bool replayed = use == Use::persistent;
  const Choice choice = choose(runtime.config, runtime.library, asked, shape, replayed, hint);
  if (choice.engine == Engine::native || runtime.threads_allowed()) return choice;
  return choose(runtime.config, runtime.library, Engine::function, shape, replayed, hint);
}

// Returns whether its blocking calls may be learnt about: the node's memory does not serve them.
bool learns_blocking(const Runtime& runtime, const Communicator& communicator) {
  return runtime.learns_by_messages() && runtime.config.blocking == Config::Blocking::by_rule &&
         runtime.engine_for(communicator) == Engine::automatic && !communicator.on_one_node();
}

// Returns whether the call is Weft's only if the node's memory serves it.
bool in_memory_only(const Runtime& runtime, const Communicator& communicator, Use use) {
  const bool by_rule = runtime.config.blocking == Config::Blocking::by_rule;
  return runtime.in_memory_only() ||
         (use == Use::blocking && by_rule && !learns_blocking(runtime, communicator));
}

// Returns why such a call is not Weft's: it needs MPI calls of a thread, or is blocking.
Reason outside_memory(const Runtime& runtime) {
  return runtime.in_memory_only() ? Reason::level_kept : Reason::outside_memory;
}

// Returns whether the call can do without MPI_THREAD_MULTIPLE: its caller alone can complete it, or
// the thread can progress it in the node's memory. Rank-invariant.
bool can_do_without_level(const Runtime& runtime, const Plan& plan, Use use) {
  const Schedule& schedule = *plan.schedule;
  if (schedule.node_bytes == 0) return false;
  if (use == Use::persistent && needs_no_later_help(schedule, false)) return true;
  return use == Use::blocking || (runtime.has_memory_thread() &&
                                  needs_no_library(schedule.shape.kind, plan.kernel != nullptr));
}

// Others use this rank's buffers until it has signalled twice. A persistent request that its caller
// carries out may be too late for that: the caller may wait for another rank by then.
bool may_be_direct(const Runtime& runtime, Use use) {
  return use != Use::persistent || !runtime.in_memory_only() || runtime.has_memory_thread();
}

// Chooses who progresses a call in memory while the application computes: a thread costs the
// application more than it gains if the call is short or no core is free. alone: the thread can do
// it.
Engine engine_in_memory(const Runtime& runtime, const Shape& shape, bool alone) {
  constexpr std::int64_t kWorthAThread = 128 * 1024;
  const bool is_long = agreed_bytes(shape).value_or(0) >= kWorthAThread;
  const bool may = alone && runtime.has_memory_thread() && runtime.has_spare_core();
  return is_long && may ? Engine::thread : Engine::function;
}

// Returns whether the user wants Weft's algorithm, even if the library's is faster.
bool is_named(const Runtime& runtime, const Communicator& communicator, const Shape& shape) {
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  return why_settled(runtime.config, shape, hint) != nullptr;
}

// Returns whether the library would refuse overlapping buffers. Persistent calls are Weft's all the
// same, since the library's answer about others may not hold for them.
bool is_refused(const Call& call, const Communicator& communicator, Use use) {
  if (use == Use::persistent) return false;
  const auto doubtful = doubtful_alone(call, communicator);
  return doubtful && !library_accepts(*doubtful, use == Use::blocking);
}

bool wins_as_blocking(Runtime& runtime, const Call& call, const Plan& plan) {
  if (plan.by_kernel && one_copy_rule().asked_for) return true;
  const Schedule& schedule = plan.by_kernel ? *plan.direct : *plan.schedule;
  if (!may_be_contested(runtime, *plan.communicator, schedule.shape, plan.kernel,
                        plan.direct != nullptr))
    return true;
  const BlockingCall guard(call.form);
  let_worker_end(runtime, *plan.communicator);
  Meeting meeting(runtime, call.form, *plan.communicator);
  return is_won(runtime, meeting, call, schedule, plan.kernel, Rival::blocking);
}

// Returns whether non-blocking calls may be learnt about: all, or those that the node's memory
// serves.
bool learns_requests(const Runtime& runtime, const Call& call, const Choice& rule) {
  if (!runtime.learns_in_memory()) return runtime.learns_by_messages();
  const bool has_kernel = reduces(call.kind) && kernel_for(call.op, call.recvtype);
  return needs_no_library(call.kind, has_kernel) && rule.algorithm &&
         needs_node(rule.algorithm->needs);
}

// Returns whether the user leaves the choice open, so that it may change from call to call. The
// same on all ranks.
bool may_learn(const Runtime& runtime, const Call& call, const Communicator& communicator,
               const Shape& shape, Use use, const Choice& rule) {
  const bool may = use == Use::blocking
                       ? learns_blocking(runtime, communicator)
                       : use == Use::request && learns_requests(runtime, call, rule) &&
                             runtime.engine_for(communicator) == Engine::automatic;
  return may && !is_named(runtime, communicator, shape);
}

SiteKey key_of(const Shape& shape, Use use, Kernel kernel) {
  const auto bytes = agreed_bytes(shape);
  return {shape.kind,
          bytes ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(*bytes))) : -1,
          kernel != nullptr, use == Use::blocking};
}

// Returns the rule's way of non-blocking calls inside one node.
Choice rule_in_memory(const Runtime& runtime, const Shape& shape, const Choice& choice) {
  if (!wins_as_request(runtime.library, shape, runtime.ranks_share_cores()))
    return {Engine::native, nullptr};
  return {engine_in_memory(runtime, shape, true), choice.algorithm};
}

std::vector<Choice> ways_of(const Runtime& runtime, const SiteKey& key, const Shape& shape,
                            const Choice& rule, Processor processor) {
  const Config& config = runtime.config;
  const Library library = runtime.library;
  if (key.blocking) return ways_for_blocking(config, library, shape, processor);
  if (!runtime.learns_in_memory()) {
    Beside beside = runtime.beside();
    beside.processor = processor;
    return ways_for(config, library, shape, rule, beside);
  }
  return ways_in_memory(config, library, shape, rule_in_memory(runtime, shape, rule),
                        runtime.has_spare_core(), processor);
}

// Returns nullptr if nothing is learnt about such calls.
Site* site_of(Runtime& runtime, const Call& call, Communicator& communicator, Use use,
              const Shape& shape, const Choice& rule) {
  const Kernel kernel = reduces(call.kind) ? kernel_for(call.op, call.recvtype) : nullptr;
  const SiteKey key = key_of(shape, use, kernel);
  std::optional<SharedWords> memory;
  if (runtime.learns_in_memory()) {
    memory = communicator.sites->memory_for(key, communicator.room);
    if (!memory) return nullptr;
  }
  return communicator.sites->find_or_make(key, [&]() -> std::unique_ptr<Site> {
    auto ways = ways_of(runtime, key, shape, rule, communicator.processor);
    // These ways need a communicator of their own.
    if (!communicator.has_own)
      std::erase_if(ways, [](const Choice& way) {
        return way.engine == Engine::assist || way.engine == Engine::tcc;
      });
    const Learn learn = runtime.config.learn;
    Learner::Settings settings;
    settings.seed =
        static_cast<std::uint64_t>(key.kind) * 64 + static_cast<std::uint64_t>(key.size_class + 1);
    settings.known = runtime.learnt.find(communicator, key, ways);
    settings.conditional = worker_among(ways);
    settings.ways_of_short = ways_by_callers(ways);
    settings.by_own_time = key.blocking;
    settings.by_least_time = key.blocking && waits_for_all(key.kind);
    settings.switches = learn == Learn::switching;
    settings.tries = learn != Learn::use;
    settings.has_free_slots = communicator.sites->has_free_slots();
    auto site =
        std::make_unique<Site>(call.form, key, std::move(ways), settings, runtime.trial_budget);
    if (memory) site->in_memory.emplace(*memory, communicator.size);
    return site;
  });
}

// Returns whether a plan that is at_once can be carried out inline by its caller (InHand).
bool stays_in_hand(const Runtime& runtime, const Call& call, const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  return runtime.keeps_in_hand() && !call.has_arrays() && !schedule.shape.packed &&
         schedule.node_bytes > 0 && schedule.temp_bytes == 0 && !schedule.program.empty() &&
         !worth_the_thread(plan.engine, schedule) && signals_at_once(schedule);
}

// Rank-invariant. by_rule: inside one node, engine and whether the call is Weft's follow the rule.
std::optional<Reason> plan_by(Runtime& runtime, const Call& call, Use use, const Shape& shape,
                              const Choice& choice, bool by_rule, Plan* plan);

// Rank-invariant, except for arguments that the library refuses on this rank before anything
// travels.
std::optional<Reason> plan_anew(Runtime& runtime, const Call& call, Use use, Plan* plan) {
  Communicator& communicator = *plan->communicator;
  if (is_neighborhood(call.kind) && !communicator.neighbors) return Reason::topology;
  const bool learns = use == Use::blocking && learns_blocking(runtime, communicator);
  if (!arguments_look_right(call, communicator) || is_refused(call, communicator, use))
    return Reason::arguments;
  const Shape shape = shape_of(call, communicator);
  const auto agreed = agreed_bytes(shape);
  if (agreed == 0 && call.kind != Kind::barrier) return Reason::empty;
  if (agreed > INT32_MAX) return Reason::large;
  plan->by_callers = runtime.operators_stay() && reduces(call.kind) && !is_predefined(call.op);
  const Choice choice = choice_for(runtime, communicator, use, shape, plan->by_callers);
  if (!plan->by_callers && may_learn(runtime, call, communicator, shape, use, choice)) {
    if (Site* site = site_of(runtime, call, communicator, use, shape, choice)) {
      plan->ways = std::make_shared<Ways>(site, site->ways.size());
      return std::nullopt;
    }
  }
  if (learns) return outside_memory(runtime);
  return plan_by(runtime, call, use, shape, choice, true, plan);
}

std::optional<Reason> plan_by(Runtime& runtime, const Call& call, Use use, const Shape& shape,
                              const Choice& choice, bool by_rule, Plan* plan) {
  Communicator& communicator = *plan->communicator;
  if (choice.engine == Engine::native) return Reason::rule;
  look_for_devices();
  plan->engine = choice.engine;
  plan->kernel = reduces(call.kind) ? kernel_for(call.op, call.recvtype) : nullptr;
  const bool packs =
      use != Use::blocking && runtime.in_memory_only() && PackedData::is_needed(shape);
  const Shape& moved = packs ? PackedData::shape_on_bytes(shape) : shape;
  plan->use(schedule_for(runtime, communicator, moved, choice));
  plan->in_memory = choice.algorithm && needs_memory(choice.algorithm->needs);
  plan->leads = choice.algorithm && choice.algorithm->needs == Needs::nodes_leaders;
  if (in_memory_only(runtime, communicator, use) && !can_do_without_level(runtime, *plan, use))
    return outside_memory(runtime);
  if (by_rule && use != Use::blocking && runtime.in_memory_only())
    plan->engine = engine_in_memory(runtime, shape, plan->alone);
  if (by_rule && use == Use::request && runtime.in_memory_only() &&
      !is_named(runtime, communicator, shape) &&
      !wins_as_request(runtime.library, shape, runtime.ranks_share_cores()))
    return Reason::rule;
  const bool in_order = runtime.config.reproducible && reduces(call.kind);
  if (!in_order && may_be_direct(runtime, use))
    plan->direct = direct_for(communicator, shape, choice, plan->kernel);
  plan->by_kernel = plan->direct && one_copy() && one_copy_rule().takes(shape);
  if (plan->direct) plan->shows = BuffersToShow(*plan->direct, plan->by_kernel);
  plan->at_once = plan->alone && !plan->direct && !devices_possible();
  plan->in_hand = plan->at_once && use == Use::request && stays_in_hand(runtime, call, *plan);
  if (use == Use::blocking && in_memory_only(runtime, communicator, use) &&
      !wins_as_blocking(runtime, call, *plan))
    return Reason::library_wins;
  plan->bytes = local_bytes(shape);
  return std::nullopt;
}

const Plan* decline(Reason reason, const Runtime& runtime, Alike alike, std::uint64_t epoch) {
  declined_for = reason;
  known_calls.answered(may_go_straight(runtime) ? alike : Alike::none, epoch, nullptr);
  return nullptr;
}

const Plan* answer(const Plan& plan, const Runtime& runtime, Alike alike, std::uint64_t epoch) {
  if (plan.declined) return decline(*plan.declined, runtime, alike, epoch);
  known_calls.answered(alike, epoch, &plan);
  return &plan;
}

// Returns the reasons that need no look at the arguments.
std::optional<Reason> decline_at_once(Runtime& runtime, MPI_Comm comm,
                                      const Communicator* communicator, Kind kind, Use use) {
  if (runtime.native())
    return runtime.config.engine == Engine::native ? Reason::engine_native : Reason::level_kept;
  if (!communicator && is_of_session(comm)) return Reason::session;
  if (!communicator)
    return runtime.communicators.is_crowded_out(comm) ? Reason::crowded : Reason::communicator;
  if (runtime.engine_for(*communicator) == Engine::native) return Reason::engine_native;
  // For calls with arrays each rank knows only its own part.
  const bool learns = use == Use::blocking && learns_blocking(runtime, *communicator);
  if (learns && !has_one_count(kind)) return outside_memory(runtime);
  if (!in_memory_only(runtime, *communicator, use)) return std::nullopt;
  const bool possible =
      use != Use::request || (runtime.has_memory_thread() && needs_no_library(kind, true));
  const bool served = communicator->on_one_node() && possible && node_serves(kind);
  return served ? std::nullopt : std::optional(outside_memory(runtime));
}

// Returns what differs by shape within a class of sizes: the rule's choice, or a listed one if it
// applies.
Choice choice_on(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                 const Site& site, std::size_t way) {
  if (way == 0) return choice_for(runtime, communicator, Use::request, shape, false);
  const Choice& choice = site.ways[way];
  const bool is_right = !choice.algorithm || applies(*choice.algorithm, shape);
  return is_right ? choice : choose(runtime.config, runtime.library, choice.engine, shape);
}

[[gnu::noinline]] const Plan* plan_made(Runtime& runtime, const Call& call, Use use) {
  if (holding.load() > 0 && use != Use::request) let_held_go(runtime, call.comm);
  const std::uint64_t began_at = epoch();
  Communicator* communicator = runtime.communicators.find(call.comm);
  if (const auto declined = decline_at_once(runtime, call.comm, communicator, call.kind, use)) {
    const bool known = communicator || runtime.native();
    return decline(*declined, runtime, known ? Alike::all : Alike::none, began_at);
  }
  Plan made;
  made.communicator = communicator;
  made.declined = plan_anew(runtime, call, use, &made);
  // A refusal may depend on the addresses of the buffers, which similar calls do not share. Without
  // a topology the lengths of arrays are unknown.
  const bool alone = made.declined == Reason::arguments || made.declined == Reason::topology;
  const Plan* plan =
      alone ? RecentPlans::own().keep(made) : RecentPlans::own().add(call, use, began_at, made);
  return answer(*plan, runtime, alone ? Alike::none : Alike::same_arguments, began_at);
}

}  // namespace

// A hand-over costs more than a short call. If no other rank waits for this rank's progress and the
// message is short enough to have left with the first round, the thread is not woken.
bool worth_the_thread(Engine engine, const Schedule& schedule) {
  constexpr std::int64_t kLeavesAtOnce = 8 * 1024;
  if (engine == Engine::function) return false;
  return schedule.sends_after_first_round || local_bytes(schedule.shape) > kLeavesAtOnce;
}

const Plan* plan_for(Runtime& runtime, const Call& call, Use use) {
  const Plan* plan = RecentPlans::find_own(call, use);
  if (!plan) [[unlikely]]
    return plan_made(runtime, call, use);
  return answer(*plan, runtime, Alike::same_arguments, epoch());
}

void leave_blocking(Runtime& runtime, CallId id) {
  if (runtime.observing()) {
    known_calls.last_alike = Alike::none;
    runtime.summary.passed_on(id,
                              runtime.native() ? Reason::engine_native : Reason::outside_memory);
  } else {
    decline(declined_for, runtime, Alike::all, epoch());
  }
}

const Plan& make_plan_of(Runtime& runtime, const Call& call, const Plan& first, int way) {
  const Site& site = *first.ways->site;
  const auto place = static_cast<std::size_t>(way);
  auto plan = std::make_unique<Plan>();
  plan->communicator = first.communicator;
  // The rule's way is found anew for each shape; for blocking calls it is the library's.
  const bool as_listed = way > 0 || site.key.blocking;
  if (as_listed && site.ways[place].engine == Engine::native) {
    plan->declined = Reason::learnt;
  } else {
    const Shape shape = shape_of(call, *first.communicator);
    const Choice choice = choice_on(runtime, *first.communicator, shape, site, place);
    const Use use = site.key.blocking ? Use::blocking : Use::request;
    plan->declined = plan_by(runtime, call, use, shape, choice, !as_listed, plan.get());
    if (plan->declined == Reason::rule) plan->declined = Reason::learnt;
  }
  return first.ways->keep(way, std::move(plan));
}

bool is_left_at_site(const Plan& plan, const void* profiled_by) {
  if (this_thread.is_inside() || (profiled_by && from_library(profiled_by))) return false;
  Site& site = *plan.ways->site;
  const auto way = site.learner.way_at_once();
  if (!way || site.key.blocking) return false;
  const Plan* const made = plan.ways->plan(*way);
  Runtime& runtime = *Runtime::active();
  if (!made || !made->declined || runtime.observing()) return false;
  return next_way_at_once(runtime, *plan.communicator, site).has_value();
}

void decline_after_all(Reason reason) {
  declined_for = reason;
  known_calls.last_alike = Alike::none;
}

void decline_this_call(Reason reason) {
  declined_for = reason;
}

Reason why_declined() {
  return declined_for;
}

}  // namespace weft
