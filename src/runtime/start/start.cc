// The start of a collective: an operation is made by its plan and passed to its executor, or the
// call is left to the library.
#include "runtime/start/start.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/alone.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/adaptive/sites.h"
#include "runtime/call/call_copies.h"
#include "runtime/call/shape.h"
#include "runtime/node/shared_buffers.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/persistent.h"
#include "runtime/runtime.h"
#include "runtime/start/held.h"
#include "runtime/start/known_calls.h"
#include "runtime/start/plans.h"
#include "runtime/start/schedules.h"
#include "runtime/start/submit.h"
#include "runtime/trial/contest.h"
#include "runtime/trial/request_memory.h"
#include "runtime/trial/tuning.h"
#include "select/split_rule.h"

namespace weft {
namespace {

template <class Made, class... More>
std::shared_ptr<Made> make_operation(CallId id, const Call& call, const Plan& plan, int tag,
                                     More... more) {
  auto made = std::make_shared<Made>(id, call, plan.communicator->shared_from_this(), plan.schedule,
                                     plan.kernel, tag, std::move(more)...);
  if (plan.by_callers) made->leave_to_callers();
  return made;
}

// A schedule that is tried first, and the one that may follow, share a turn.
const Schedule& first_of(const Plan& plan) {
  return plan.direct ? *plan.direct : *plan.schedule;
}

// Takes the turns of a single call before its first advance: in the communicator's memory if the
// schedule needs it, and among collectives between leaders.
void take_turn(CollectiveOperation& operation, const Plan& plan, Ends ends) {
  if (Leaders* leaders = plan.communicator->leaders.get()) operation.lead(*leaders);
  const Schedule& first = first_of(plan);
  if (first.node_bytes > 0) operation.take_turn(plan.communicator->memory->windows(), ends, first);
}

// Takes the turn of a call on its caller's stack.
inline NodeTurn turn_in_order(const Plan& plan, const Schedule& first) {
  if (first.node_bytes == 0) return {};
  return plan.communicator->memory->windows().next(Ends::in_order, first);
}

ShownBuffers shown_buffers(const Plan& plan, const Call& call,
                           ProcessMemory::Use use = ProcessMemory::Use::once) {
  return plan.shows.in(call, plan.communicator->memory->sharing(), use);
}

std::unique_ptr<PeerBuffers> peers_of(const Communicator& communicator) {
  return std::make_unique<PeerBuffers>(shared_ranges(), communicator.memory->sharing(),
                                       process_memory(), one_copy());
}

// Makes the operation of a single call that is not carried out on its caller's stack alone.
template <class Made>
std::shared_ptr<Made> single_operation(CallId id, const Call& call, const Plan& plan, int tag) {
  auto operation = make_operation<Made>(id, call, plan, tag, plan.direct);
  operation->set_in_memory(plan.alone);
  if (!plan.direct) return operation;
  auto peers = peers_of(*plan.communicator);
  peers->begin(shown_buffers(plan, call));
  operation->reach(std::move(peers));
  return operation;
}

// An initialisation may wait for the other ranks, unlike the start of a collective: communicators
// from MPI_Comm_idup get their internal communicator here. Rank-invariant, as are the known
// communicators.
void get_to_know(CallId id, MPI_Comm comm) {
  Runtime* runtime = Runtime::active();
  if (!runtime || runtime->native() || comm == handles.comm_null) return;
  if (runtime->communicators.find(comm)) return;
  const BlockingCall guard(id);
  runtime->add_communicator(comm, {});
}

int next_tag(Communicator& communicator) {
  return communicator.tags.of_single(communicator.next_in_sequence());
}

// Makes a persistent collective that neither the library nor Weft has: each start makes the
// library's non-blocking call on the application's own communicator.
std::shared_ptr<PersistentOperation> by_nonblocking_calls(CallId id, const Call& call) {
  int inter = 0, rank = 0, size = 1;
  library_calls.Comm_test_inter(call.comm, &inter);
  library_calls.Comm_rank(call.comm, &rank);
  library_calls.Comm_size(call.comm, &size);
  if (inter) {
    library_calls.Comm_remote_size(call.comm, &size);
    rank = MPI_ROOT;  // the rank whose arrays count has this as its root
  }
  auto communicator = std::make_shared<Communicator>(call.comm, Shadow{call.comm}, rank, size);
  if (is_neighborhood(call.kind)) communicator->neighbors = neighbors_of(call.comm);
  return std::make_shared<PersistentOperation>(
      id, call, communicator, library_schedule(call, *communicator), nullptr, 0, Engine::function);
}

// Returns why a persistent collective follows the rule; nullptr if it is to be tuned. The same on
// all ranks.
const char* untuned(const Config& config, const Plan& plan) {
  const Shape& shape = plan.schedule->shape;
  const std::string* hint = plan.communicator->hints.algorithm_for(shape.kind);
  if (const char* why = why_settled(config, shape, hint)) return why;
  if (!agreed_bytes(shape) || is_neighborhood(shape.kind))
    return "each rank knows its own part only";
  if (config.init_budget_us == 0) return "there is no budget";
  return reduces(shape.kind) && !plan.kernel ? "the operator may not be tried out" : nullptr;
}

void tune(Runtime& runtime, Meeting& meeting, CallId id, const Call& call, Plan& plan) {
  if (const char* why = untuned(runtime.config, plan))
    return runtime.summary.planned(plan_by_rule(id, call, *plan.schedule, why));
  plan.use(tuned_schedule(runtime, call, meeting, plan.kernel, plan.schedule));
  const Algorithm* algorithm = find_algorithm(call.kind, plan.schedule->algorithm);
  plan.in_memory = needs_memory(algorithm->needs);
}

bool holds_on_all(Meeting& meeting, bool value) {
  const auto all = meeting.exchange(static_cast<int>(value));
  return all && std::find(all->begin(), all->end(), 0) == all->end();
}

// Makes the plan a direct one, with the ranks' buffers, if all of these are shared. Collective.
std::unique_ptr<PeerBuffers> peers_for(Meeting& meeting, const Call& call, Plan& plan) {
  if (!plan.direct) return nullptr;
  const ShownBuffers own = confirmed(shown_buffers(plan, call, ProcessMemory::Use::often));
  const auto all = meeting.exchange(own);
  if (!all) return nullptr;
  auto peers = peers_of(*plan.communicator);
  const PeerBuffers::Found found = peers->know(*all, own);
  if (!found.visible || (found.attached && !holds_on_all(meeting, found.reached))) return nullptr;
  if (found.attached) peers->agreed();
  plan.use(plan.direct);
  return peers;
}

// The memory of a persistent request, which is its own since ranks may start others in other
// orders.
struct OwnMemory {
  std::unique_ptr<NodeMemory> node;
  std::unique_ptr<PeerBuffers> peers;
  std::shared_ptr<Leaders> leaders;
};

// Returns whether the library's own persistent call is as fast. Intel MPI's are left out: some of
// them (2021.18: MPI_Gather_init, MPI_Scatter_init, MPI_Allgather_init) give wrong results.
bool is_lost(Runtime& runtime, Meeting& meeting, const Call& call, const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  return runtime.library != Library::intelmpi &&
         may_be_contested(runtime, *plan.communicator, schedule.shape, plan.kernel, false) &&
         !(schedule.is_direct && one_copy_rule().asked_for) &&
         !is_won(runtime, meeting, call, schedule, plan.kernel, Rival::nonblocking);
}

// Collective; returns nullopt on all ranks alike. The plan becomes the one to be replayed, or
// declined.
std::optional<OwnMemory> memory_for(Runtime& runtime, CallId id, const Call& call, bool in_library,
                                    Plan& plan) {
  Communicator& c = *plan.communicator;
  Meeting meeting(runtime, id, c);
  OwnMemory own;
  own.peers = peers_for(meeting, call, plan);
  if (!own.peers) tune(runtime, meeting, id, call, plan);
  const bool is_open = !own.peers || own.peers->needs_kernel();  // whether it is the library's
  if (is_open && in_library && is_lost(runtime, meeting, call, plan)) {
    plan.declined = Reason::library_wins;
    return own;
  }
  if (!plan.in_memory) return own;
  auto node = memory_of_request(meeting, plan.schedule->node_bytes);
  if (!node) return std::nullopt;
  own.node = std::move(*node);
  if (plan.leads) own.leaders = make_leaders(c.shadow, c.members(), c.rank, *c.nodes);
  return own.leaders || !plan.leads ? std::optional(std::move(own)) : std::nullopt;
}

// Completes the plan for all starts, with its memory. Returns nullopt, on all ranks alike, if there
// is no memory; the plan then uses messages.
std::optional<OwnMemory> settle(Runtime& runtime, CallId id, const Call& call, bool in_library,
                                Plan& plan) {
  Communicator& c = *plan.communicator;
  const BlockingCall guard(id);
  // A worker may be inside a collective on the internal communicator.
  const bool by_workers = runtime.engine_for(c) == Engine::tcc;
  if (!by_workers) let_worker_end(runtime, c);
  if (!by_workers && !guard.must_not_block()) {
    if (auto own = memory_for(runtime, id, call, in_library, plan)) return own;
  }
  if (!plan.in_memory) return std::nullopt;
  Shape shape = plan.schedule->shape;
  shape.on_one_node = false;
  shape.nodes = nullptr;
  shape.domains = nullptr;
  const Algorithm& by_messages =
      algorithm_for(runtime.config, shape, true, c.hints.algorithm_for(shape.kind));
  plan.use(schedule_for(runtime, c, shape, {plan.engine, &by_messages}));
  return {};
}

// A direct schedule waits for all others, so that it hardly ever ends with the start.
bool wants_thread(Engine engine, const Operation& operation) {
  if (operation.tries_direct()) return engine != Engine::function;
  return worth_the_thread(engine, operation.schedule());
}

PersistentOperation::Stays stays_in_hand(const Plan& plan) {
  using Stays = PersistentOperation::Stays;
  const Schedule& schedule = *plan.schedule;
  const bool in_memory = plan.alone && schedule.node_bytes > 0;
  if (!in_memory || schedule.is_direct || worth_the_thread(plan.engine, schedule)) return Stays::no;
  return needs_no_later_help(schedule, false) ? Stays::yes : Stays::until_needed;
}

int give_request(Runtime& runtime, std::shared_ptr<PersistentOperation> operation,
                 MPI_Request* request) {
  const int code = operation->has_memory() ? operation->make_request() : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) return call_error_handler(*operation, code);
  *request = operation->request();
  runtime.requests.add(std::move(operation));
  return MPI_SUCCESS;
}

// Carries out the starting call's part of a split tree: other ranks' messages are under way, and
// this rank's core is free for them now. Returns true if everything is complete.
[[gnu::noinline]] bool ends_at_start(Runtime& runtime, Engine engine,
                                     CollectiveOperation& operation) {
  const Schedule& schedule = operation.schedule();
  if (!has_progress_thread(engine) || operation.round() >= schedule.rounds_at_start) return false;
  const std::int64_t until_ns = now_ns() + most_time_at_start_ns(schedule);
  while (operation.round() < schedule.rounds_at_start && now_ns() < until_ns) {
    runtime.progress.poll();
    runtime.progress.yield_core();
    if (operation.advance()) return true;
  }
  return false;
}

// Returns false if the rank itself must carry it out.
bool leave_to_agent(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation) {
  if (!runtime.progress.has_desk()) return false;
  const auto work = operation->work();
  if (!work || !runtime.progress.leave_to_agent(operation, *work)) return false;
  runtime.summary.left_to_agent();
  return true;
}

// Whole collectives of the library's begin in one order on all ranks: those that the thread drives
// begin behind those that the worker carries out. Returns false if there is no worker.
bool leave_to_worker(Runtime& runtime, Engine engine,
                     const std::shared_ptr<CollectiveOperation>& operation) {
  Worker* const worker = operation->communicator().worker.get();
  if (!worker || (runtime.callers_go_on() && engine != Engine::tcc)) return false;
  if (runtime.callers_go_on())
    runtime.progress.submit(operation, false);  // whoever waits next blocks in its place
  else if (engine == Engine::tcc)
    worker->submit(operation);
  else
    worker->begin(operation, [&runtime](std::shared_ptr<Operation> begun) {
      runtime.progress.submit(std::move(begun), true);
    });
  return true;
}

}  // namespace

void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation) {
  const bool whole = engine == Engine::tcc || engine == Engine::assist;
  if (whole && leave_to_worker(runtime, engine, operation)) return;
  if (operation->advance()) return;
  const bool split = operation->schedule().is_split();
  if (split && ends_at_start(runtime, engine, *operation)) return;
  const bool left = split && operation->is_at_callers_part();
  const bool thread = !left && wants_thread(engine, *operation);
  if (thread && engine == Engine::agent && leave_to_agent(runtime, operation)) return;
  runtime.progress.submit(std::move(operation), thread);
}

void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation) {
  if (operation->advance()) return;
  runtime.progress.submit(operation, false);
  runtime.progress.drive_until([&] { return operation->done(); }, [&] { operation->wait_done(); });
}

std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows) {
  Shape shape;
  shape.kind = call.kind;
  shape.rank = knows.rank, shape.size = knows.size, shape.root = call.root;
  shape.send_blocks.resize(array_length(call, knows, Direction::send));
  shape.recv_blocks.resize(array_length(call, knows, Direction::recv));
  return std::make_shared<const Schedule>(build_library(shape, StepKind::library_nonblocking));
}

std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows) {
  auto users = std::make_shared<Communicator>(call.comm, Shadow{call.comm}, knows.rank, knows.size);
  return std::make_shared<CollectiveOperation>(id, call, users, library_schedule(call, knows),
                                               nullptr, 0);
}

std::shared_ptr<CollectiveOperation> operation_in_order(Runtime& runtime, CallId id,
                                                        const Call& call, const Plan& plan) {
  const int tag = next_tag(*plan.communicator);
  auto operation = single_operation<CollectiveOperation>(id, call, plan, tag);
  take_turn(*operation, plan, Ends::any_time);
  return operation;
}

namespace {

// site: that of a call about which engine auto learns; else nullptr. Returns an MPI error code.
[[gnu::always_inline]] inline int start_by(Runtime& runtime, CallId id, const Call& call,
                                           const Plan& plan, Site* site, MPI_Request* request) {
  if (plan.in_hand && runtime.in_hand.start(runtime, id, call, plan, site, request))
    return MPI_SUCCESS;
  const std::int64_t entered = runtime.observing() ? now_ns() : 0;
  plan.communicator->lend();
  const int tag = next_tag(*plan.communicator);
  auto operation = single_operation<RequestedOperation>(id, call, plan, tag);
  const int code = operation->has_memory() ? operation->make_request() : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) return call_error_handler(*operation, code);
  *request = operation->request();
  if (site) operation->count_in(site->in_flight);
  runtime.requests.add(operation);
  runtime.requests.activated();
  runtime.summary.handled(id, plan.bytes, plan.schedule->node_bytes > 0);
  if (runtime.observing()) operation->times.started = entered;
  take_turn(*operation, plan, Ends::any_time);
  submit(runtime, plan.engine, std::move(operation));
  if (entered == 0) return MPI_SUCCESS;
  if (auto* track = runtime.application_track()) track->span(call_name(id), entered, now_ns());
  return MPI_SUCCESS;
}

// Starts a call at which the learner has something to note. Returns false if its way is the
// library's.
[[gnu::noinline]] bool start_at_site(Runtime& runtime, CallId id, const Call& call,
                                     const Plan& plan, MPI_Request* request, int* code) {
  Site& site = *plan.ways->site;
  const auto way = next_way_now(runtime, id, *plan.communicator, site);
  if (!way) {
    *code = hold(runtime, id, call, *plan.communicator, &plan, request);
    return true;
  }
  const Plan& chosen = plan_of(runtime, call, plan, *way);
  if (chosen.declined) {
    decline_this_call(*chosen.declined);
    if (site.learner.is_watching()) {
      plan.communicator->lend();  // the watch may outlive it
      watch_for(&site, plan.communicator);
    }
    return false;
  }
  *code = start_by(runtime, id, call, chosen, &site, request);
  return true;
}

}  // namespace

bool start(CallId id, const Call& call, const Plan* known, MPI_Request* request, int* code) {
  Runtime* runtime = request ? Runtime::active() : nullptr;
  if (!runtime) [[unlikely]] {
    known_calls.last_alike = Alike::none;
    return false;
  }
  runtime->in_hand.hand_over();
  const Plan* plan = known ? known : plan_for(*runtime, call, Use::request);
  if (holding.load(std::memory_order_acquire) > 0) [[unlikely]]
    if (hold_behind_others(*runtime, id, call, plan, request, code)) return true;
  if (!plan) return false;
  Site* site = nullptr;
  if (plan->ways) {
    site = plan->ways->site;
    const auto way = next_way_at_once(*runtime, *plan->communicator, *site);
    if (!way) [[unlikely]]
      return start_at_site(*runtime, id, call, *plan, request, code);
    Ways& ways = *plan->ways;
    plan = &plan_of(*runtime, call, *plan, *way);
    ways.was_left = plan->declined.has_value();
    if (ways.was_left) [[unlikely]] {
      decline_this_call(*plan->declined);
      return false;
    }
  }
  *code = start_by(*runtime, id, call, *plan, site, request);
  return true;
}

bool initialise(CallId id, const Call& call, bool in_library, MPI_Request* request, int* code) {
  get_to_know(id, call.comm);
  Runtime* runtime = request ? Runtime::active() : nullptr;
  if (runtime) runtime->in_hand.hand_over();
  const Plan* found = runtime ? plan_for(*runtime, call, Use::persistent) : nullptr;
  known_calls.last_alike = Alike::none;  // no initialisation is known again
  if (found && !found->communicator->has_tag_left()) {
    decline_after_all(Reason::crowded);
    found = nullptr;
  }
  if (found) {
    Plan plan = *found;
    plan.communicator->lend();
    auto memory = settle(*runtime, id, call, in_library, plan);
    if (plan.declined) {
      decline_after_all(*plan.declined);
      return false;
    }
    if (runtime->in_memory_only() && !memory && in_library) return false;
    if (runtime->in_memory_only() && !memory) {
      *code = give_request(*runtime, by_nonblocking_calls(id, call), request);
      runtime->summary.passed_on(id, Reason::level_kept);
      return true;
    }
    if (!memory) memory.emplace();
    if (memory->peers) runtime->summary.direct(id);
    const int tag =
        plan.communicator->tags.of_persistent(plan.communicator->initialised.fetch_add(1));
    auto operation = make_operation<PersistentOperation>(
        id, call, plan, tag, plan.engine, std::move(memory->node), std::move(memory->peers),
        std::move(memory->leaders), stays_in_hand(plan));
    operation->set_in_memory(plan.alone);
    *code = give_request(*runtime, std::move(operation), request);
    runtime->summary.handled(id, plan.bytes, plan.schedule->node_bytes > 0);
    return true;
  }
  if (in_library || !runtime) return false;
  *code = give_request(*runtime, by_nonblocking_calls(id, call), request);
  runtime->summary.passed_on(id, why_declined());
  return true;
}

namespace {

int failed(const Call& call, int code) {
  if (Communicator* known = Runtime::active()->communicators.find(call.comm)) known->has_failed();
  library_calls.Comm_call_errhandler(call.comm, code);
  return code;
}

// Completes the execution, and helps others meanwhile. Returns an MPI error code.
int drive(Runtime& runtime, const Call& call, Execution& execution) {
  Result<bool> done = false;
  runtime.progress.drive_in_hand([&](int polls) {
    done = execution.advance(polls);
    return !done || *done;
  });
  return done ? MPI_SUCCESS : failed(call, kOtherCall);
}

// Carries out a call in memory alone, with nothing but the stack.
[[gnu::always_inline]] inline int carry_out_in_memory(Runtime& runtime, const Call& call,
                                                      const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  const TempBuffer temp(schedule.temp_bytes);
  if (!temp.there()) return failed(call, MPI_ERR_NO_MEM);
  const NodeTurn turn = turn_in_order(plan, schedule);
  Operands operands = operands_of(call, plan.kernel, temp.data());
  operands.use(turn, schedule);
  const bool done = carry_out_alone(runtime.progress, schedule, operands, turn);
  return done ? MPI_SUCCESS : failed(call, kOtherCall);
}

// Carries out a call in memory, without a copy if all ranks' buffers are shared.
[[gnu::noinline]] int try_direct_in_memory(Runtime& runtime, CallId id, const Call& call,
                                           const Plan& plan) {
  const TempBuffer temp(std::max(plan.schedule->temp_bytes, plan.direct->temp_bytes));
  if (!temp.there()) return failed(call, MPI_ERR_NO_MEM);
  const NodeTurn turn = turn_in_order(plan, *plan.direct);
  Operands operands = operands_of(call, plan.kernel, temp.data());
  operands.use(turn, *plan.schedule);
  operands.peers = &plan.communicator->memory->peers();
  operands.peers->begin(shown_buffers(plan, call));
  Execution execution(*plan.schedule, nullptr, &operands, &turn);
  execution.try_first(*plan.direct);
  const int code = drive(runtime, call, execution);
  if (code == MPI_SUCCESS && execution.was_direct()) runtime.summary.direct(id);
  return code;
}

// Carries out a call by messages, or with steps that only MPI can do on the data.
[[gnu::noinline]] int carry_out_by_messages(Runtime& runtime, CallId id, const Call& call,
                                            const Plan& plan, std::uint32_t number) {
  auto operation = single_operation<CollectiveOperation>(id, call, plan,
                                                         plan.communicator->tags.of_single(number));
  if (!operation->has_memory()) return call_error_handler(*operation, MPI_ERR_NO_MEM);
  take_turn(*operation, plan, Ends::in_order);
  carry_to_its_end(runtime, operation);
  return operation->claim_error() ? call_error_handler(*operation, operation->error_code())
                                  : MPI_SUCCESS;
}

// Carries out a call with buffers of any kind.
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

// Carries out a call that is observed, or needs more than memory.
[[gnu::noinline]] int carry_out_in_any_way(Runtime& runtime, CallId id, const Call& call,
                                           const Plan& plan) {
  const WatchedCall watched(id);
  const std::int64_t entered = runtime.observing() ? now_ns() : 0;
  runtime.summary.handled(id, plan.bytes, plan.schedule->node_bytes > 0);
  const std::uint32_t number = plan.communicator->next_in_sequence();
  int code;
  if (!plan.alone)
    code = carry_out_by_messages(runtime, id, call, plan, number);
  else
    code = carry_out_within_reach(runtime, id, call, plan);
  if (entered == 0) return code;
  const std::int64_t ended = now_ns();
  runtime.summary.spent(id, ended - entered);
  if (auto* track = runtime.application_track()) track->span(call_name(id), entered, ended);
  return code;
}

// Carries out a call at a site of engine auto's. Returns false if its way is the library's.
[[gnu::noinline]] bool carry_out_at_site(Runtime& runtime, CallId id, const Call& call,
                                         const Plan& plan, int* code) {
  Site& site = *plan.ways->site;
  const int way = next_way_in_call(runtime, id, *plan.communicator, site);
  const Plan& chosen = plan_of(runtime, call, plan, way);
  const bool is_timed = site.learner.wants_own_time();
  if (chosen.declined) {
    runtime.summary.passed_on(id, *chosen.declined);
    if (is_timed) DeclinedCall::declined_at = &site;
    return false;
  }
  const std::int64_t began_ns = is_timed ? now_ns() : 0;
  *code = carry_out_in_any_way(runtime, id, call, chosen);
  if (is_timed) site.learner.took(now_ns() - began_ns);
  return true;
}

}  // namespace

bool carry_out(CallId id, const Call& call, const Plan* known, int* code) {
  Runtime* runtime = Runtime::active();
  if (!runtime) return false;
  if (!blocking_taken.load(std::memory_order_acquire)) [[unlikely]] {
    leave_blocking(*runtime, id);
    finish_before_blocking(*runtime, call.comm);
    return false;
  }
  runtime->in_hand.hand_over();
  const Plan* plan = known ? known : plan_for(*runtime, call, Use::blocking);
  if (!plan) {
    runtime->summary.passed_on(id, why_declined());
    finish_before_blocking(*runtime, call.comm);
    return false;
  }
  const bool looked_at = runtime->observing() || watching.load(std::memory_order_relaxed);
  if (!plan->at_once || looked_at) {
    if (plan->ways) return carry_out_at_site(*runtime, id, call, *plan, code);
    *code = carry_out_in_any_way(*runtime, id, call, *plan);
  } else {
    plan->communicator->next_in_sequence();
    *code = carry_out_in_memory(*runtime, call, *plan);
  }
  return true;
}

void passed_on(CallId id, MPI_Request* request, int code) {
  Runtime* runtime = Runtime::active();
  const auto [site, communicator] = take_watched();
  if (!runtime || code != MPI_SUCCESS) return;
  runtime->summary.passed_on(id, why_declined());
  const bool non_blocking = call_name(id)[4] == 'I';  // not a persistent initialisation
  if ((!runtime->observing() && !site) || !non_blocking) return;
  if (site) site->in_flight.fetch_add(1, std::memory_order_relaxed);
  runtime->requests.watch(
      *request, {id, {now_ns(), 0, 0}, site ? communicator->shared_from_this() : nullptr, site});
}

}  // namespace weft
