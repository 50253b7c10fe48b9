// Initialises persistent collectives. This may wait for the other ranks, so that all ranks agree on
// a plan, and on shared memory for all starts.
#include "runtime/start/initialise.h"

#include <algorithm>

#include "base/log.h"
#include "coll/algorithm_names.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/call/device_memory.h"
#include "runtime/call/library_support.h"
#include "runtime/call/shape.h"
#include "runtime/comm/neighbors.h"
#include "runtime/node/reach.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/persistent.h"
#include "runtime/request/submit.h"
#include "runtime/start/deferred.h"
#include "runtime/start/operations.h"
#include "runtime/start/plans.h"
#include "runtime/start/schedules.h"
#include "runtime/start/staged_calls.h"
#include "runtime/trial/native_comparison.h"
#include "runtime/trial/request_memory.h"
#include "runtime/trial/told_edges.h"
#include "runtime/trial/tuning.h"

namespace weft {
namespace {

// Makes Weft's data on the communicator if there are none. This is so for communicators from
// MPI_Comm_idup: unlike that call, an initialisation may wait for the other ranks, which making an
// internal communicator requires. All ranks have data on the same communicators.
void get_to_know(CallId id, MPI_Comm comm) {
  Runtime* runtime = Runtime::active();
  if (!runtime || runtime->native() || comm == handles.comm_null) return;
  if (Communicators::own().find(comm)) return;
  const BlockingCall guard(id);
  add_communicator(*runtime, comm, {});
}

// Makes a persistent collective where neither Weft nor the MPI library can carry out the persistent
// call. Each start then makes the MPI library's non-blocking call on the application's
// communicator.
std::shared_ptr<PersistentOperation> by_nonblocking_calls(CallId id, const Call& call) {
  int inter = 0, rank = 0, size = 1;
  library_calls.Comm_test_inter(call.comm, &inter);
  library_calls.Comm_rank(call.comm, &rank);
  library_calls.Comm_size(call.comm, &size);
  if (inter) {
    library_calls.Comm_remote_size(call.comm, &size);
    rank = MPI_ROOT;  // for the root of an intercommunicator, whose arrays count
  }
  auto communicator =
      std::make_shared<Communicator>(call.comm, InternalCommunicator{call.comm}, rank, size);
  if (is_neighborhood(call.kind)) communicator->neighbors = neighbors_of(call.comm);
  return std::make_shared<PersistentOperation>(
      id, call, communicator, library_schedule(call, *communicator), nullptr, 0, Engine::function);
}

// Returns why a persistent collective uses the fixed rule and is not measured; nullptr if it is to
// be measured. The result is equal on all ranks.
const char* untuned(const Config& config, const Plan& plan) {
  const Shape& shape = plan.schedule->shape;
  const std::string* hint = plan.communicator->hints.algorithm_for(shape.kind);
  if (const char* why = why_settled(config, shape, hint)) return why;
  if (has_one_leader(algorithm_of(*plan.schedule))) return "the agents of the nodes carry it out";
  if (!agreed_bytes(shape) && !shape.edges) return "each rank knows its own part only";
  if (config.init_budget_us == 0) return "there is no budget";
  return reduces(shape.kind) && !plan.kernel ? "the operator may not be tried out" : nullptr;
}

void tune(Runtime& runtime, InternalCollective& internal_collective, CallId id, const Call& call,
          Plan& plan) {
  if (const char* why = untuned(runtime.config, plan))
    return runtime.summary.planned(plan_by_rule(id, call, *plan.schedule, why));
  plan.use(tuned_schedule(runtime, call, internal_collective, plan.kernel, plan.schedule));
  plan.needs = algorithm_of(*plan.schedule).needs;
}

// Finds out the edges of a neighbourhood collective on this node (which rank gives what to which),
// which some algorithms need; collective. All ranks then know the size of the call, and with engine
// auto the calling threads carry out a short one alone.
void find_edges(Runtime& runtime, InternalCollective& internal_collective, Plan& plan) {
  Shape shape = plan.schedule->shape;
  const std::string* hint = plan.communicator->hints.algorithm_for(shape.kind);
  if (!is_neighborhood(shape.kind) || !shape.nodes) return;
  if (why_settled(runtime.config, shape, hint)) return;
  shape.edges = told_edges(internal_collective, shape);
  if (!shape.edges) return;
  const Algorithm& algorithm = algorithm_for(runtime.config, shape, true, hint);
  plan.use(std::make_shared<const Schedule>(build(algorithm, shape, plan.schedule->tuning)));
  plan.needs = algorithm.needs;
  const bool is_free = engine_for(runtime, *plan.communicator) == Engine::automatic;
  if (is_free && shape.edges->all_bytes < kWorthAThread_bytes) plan.engine = Engine::function;
}

bool holds_on_all(InternalCollective& internal_collective, bool value) {
  const auto all = internal_collective.exchange(static_cast<int>(value));
  return all && std::find(all->begin(), all->end(), 0) == all->end();
}

// Tells the other ranks about this rank's buffers. If every rank can access all buffers, changes
// the plan to use them in place, and returns them; otherwise returns nullptr. It is collective.
std::unique_ptr<PeerBuffers> peers_for(InternalCollective& internal_collective, const Call& call,
                                       Plan& plan) {
  if (!plan.direct) return nullptr;
  const PublishedBuffers own = confirmed(shown_buffers(plan, call, ProcessMemory::Use::often));
  const auto all = internal_collective.exchange(own);
  if (!all) return nullptr;
  auto peers = peers_of(*plan.communicator);
  const PeerBuffers::Found found = peers->know(*all, own);
  if (!found.visible || (found.attached && !holds_on_all(internal_collective, found.reached)))
    return nullptr;
  if (found.attached) peers->agreed();
  plan.use(plan.direct.schedule);
  return peers;
}

// The shared memory of a persistent request. It belongs to this request alone, since ranks may
// start their requests in different orders.
struct OwnMemory {
  std::unique_ptr<NodeMemory> node;
  std::unique_ptr<PeerBuffers> peers;
  std::shared_ptr<Leaders> leaders;
};

// Returns whether the MPI library does not accept this rank's buffers, because they lie in GPU
// memory.
bool needs_copies(const Call& call, const Shape& shape) {
  return may_need_copies(call.kind) && StagedBuffers::are_needed(call, shape);
}

// Returns whether the MPI library's own persistent call is at least as fast as Weft's, so that the
// MPI library must carry it out. It is never so if it does not accept the buffers of some rank. It
// is never so with Intel MPI: some of its calls give wrong results (2021.18: MPI_Gather_init,
// MPI_Scatter_init, MPI_Allgather_init).
bool is_lost(Runtime& runtime, InternalCollective& internal_collective, const Call& call,
             const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  if (runtime.library == Library::intelmpi || (schedule.is_direct && one_copy_rule().asked_for) ||
      !may_be_compared(runtime, *plan.communicator, schedule.shape, plan.kernel, false))
    return false;
  const auto agreed = agreed_bytes(schedule.shape);
  const auto bytes = agreed ? agreed : longest_part(internal_collective, schedule.shape);
  // If the ranks' arguments do not fit together, nothing is measured, and Weft's collective reports
  // the error.
  return bytes &&
         !native_result(runtime, internal_collective, call, schedule, plan.kernel, *bytes,
                        LibraryForm::nonblocking)
              .is_won &&
         holds_on_all(internal_collective, !needs_copies(call, schedule.shape));
}

// Completes the plan and allocates its memory. Sets plan.declined if the MPI library is to carry
// the call out. It is collective. Returns nullopt on all ranks if there is no memory.
std::optional<OwnMemory> memory_for(Runtime& runtime, CallId id, const Call& call, bool in_library,
                                    Plan& plan) {
  Communicator& c = *plan.communicator;
  InternalCollective internal_collective(runtime, id, c);
  OwnMemory own;
  own.peers = peers_for(internal_collective, call, plan);
  find_edges(runtime, internal_collective, plan);
  if (!own.peers) tune(runtime, internal_collective, id, call, plan);
  // True if the MPI library may still turn out to be faster, so that the call is left to it.
  const bool is_open = !own.peers || own.peers->needs_kernel();
  if (is_open && in_library && is_lost(runtime, internal_collective, call, plan)) {
    plan.declined = Reason::library_wins;
    return own;
  }
  if (!needs_memory(plan.needs)) return own;
  auto node = memory_of_request(internal_collective, plan.schedule->node_bytes);
  if (!node) return std::nullopt;
  own.node = std::move(*node);
  if (plan.leads()) own.leaders = make_leaders(c.internal, c.members(), c.rank, *c.nodes);
  return own.leaders || !plan.leads() ? std::optional(std::move(own)) : std::nullopt;
}

// Completes the plan for all starts, with its memory; collective. Returns nullopt on all ranks if
// there is no memory; the plan then uses messages.
std::optional<OwnMemory> settle(Runtime& runtime, CallId id, const Call& call, bool in_library,
                                Plan& plan) {
  Communicator& c = *plan.communicator;
  const BlockingCall guard(id);
  // A worker thread may be inside a collective on the internal communicator.
  const bool by_workers = engine_for(runtime, c) == Engine::tcc;
  if (!by_workers) let_worker_end(runtime, c);
  if (!by_workers && !guard.must_not_block()) {
    if (auto own = memory_for(runtime, id, call, in_library, plan)) return own;
  }
  if (!needs_memory(plan.needs)) return std::nullopt;
  Shape shape = plan.schedule->shape;
  shape.on_one_node = false;
  shape.nodes = nullptr;
  shape.domains = nullptr;
  shape.edges = nullptr;
  const Algorithm& by_messages =
      algorithm_for(runtime.config, shape, true, c.hints.algorithm_for(shape.kind));
  plan.use(schedule_for(runtime, c, shape, {plan.engine, &by_messages}));
  return {};
}

PersistentOperation::Stays stays_inline(const Plan& plan) {
  using Stays = PersistentOperation::Stays;
  const Schedule& schedule = *plan.schedule;
  const bool in_memory = plan.is_alone() && schedule.node_bytes > 0;
  if (!in_memory || schedule.is_direct || worth_the_thread(plan.engine, schedule)) return Stays::no;
  return needs_no_later_help(schedule, false) ? Stays::yes : Stays::until_needed;
}

int give_request(std::shared_ptr<PersistentOperation> operation, MPI_Request* request) {
  const int code = operation->has_memory() ? operation->make_request() : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) return call_error_handler(*operation, code);
  *request = operation->request();
  Requests::own().add(std::move(operation));
  return MPI_SUCCESS;
}

// Ends a call whose starts would be the MPI library's, which does not accept this rank's buffers.
int refuse(CallId id, const Call& call) {
  say(std::string("the MPI library accepts no GPU memory in ") + call_name(id) +
      ", which Weft leaves to it; let Weft carry it out, or give memory that the processor can "
      "access");
  library_calls.Comm_call_errhandler(call.comm, MPI_ERR_BUFFER);
  return MPI_ERR_BUFFER;
}

// Leaves the call to the MPI library if it has this persistent function. If not, makes a persistent
// collective of Weft's that repeats the MPI library's non-blocking call.
Started left_to_library(Runtime& runtime, CallId id, const Call& call, bool in_library,
                        Reason reason, MPI_Request* request) {
  if (in_library && needs_copies_on(runtime, call)) return taken(refuse(id, call));
  if (in_library) return declined(reason);
  const int code = give_request(by_nonblocking_calls(id, call), request);
  runtime.summary.passed_on(id, reason);
  return taken(code);
}

// Makes the persistent collective for a complete plan, and its request. kept: objects that must
// exist as long as the collective. Returns an MPI error code.
int initialise_settled(Runtime& runtime, CallId id, const Call& call, const Plan& plan,
                       OwnMemory memory, const KeptForRequest& kept, MPI_Request* request) {
  Communicator& communicator = *plan.communicator;
  if (memory.peers) runtime.summary.direct(id);
  const int tag = communicator.tags.of_persistent(communicator.initialised.fetch_add(1));
  auto operation = make_operation<PersistentOperation>(
      id, call, plan, tag, plan.engine, std::move(memory.node), std::move(memory.peers),
      std::move(memory.leaders), stays_inline(plan));
  operation->set_in_memory(plan.is_alone());
  for (const auto& resource : kept) operation->keep(resource);
  const int code = give_request(std::move(operation), request);
  runtime.summary.handled(id, plan.bytes, plan.schedule->node_bytes > 0);
  return code;
}

Started initialise_by(Runtime& runtime, CallId id, const Call& call, bool in_library, Plan plan,
                      MPI_Request* request) {
  plan.communicator->retain_for_request();
  auto memory = settle(runtime, id, call, in_library, plan);
  if (plan.declined) return declined(*plan.declined);
  if (runtime.in_memory_only() && !memory)
    return left_to_library(runtime, id, call, in_library, Reason::level_kept, request);
  if (!memory) memory.emplace();
  return taken(initialise_settled(runtime, id, call, plan, std::move(*memory), {}, request));
}

}  // namespace

Started initialise(CallId id, const Call& call, bool in_library, MPI_Request* request) {
  get_to_know(id, call.comm);
  Runtime* runtime = request ? Runtime::active() : nullptr;
  if (!runtime) return {};
  InlineCall::own().hand_over();
  if (deferring.load() > 0) release_deferred(*runtime, call.comm);
  const Answer answer = plan_for(*runtime, call, Use::persistent);
  const Plan* const plan = answer.plan;
  if (plan && plan->communicator->has_tag_left())
    return initialise_by(*runtime, id, call, in_library, *plan, request);
  return left_to_library(*runtime, id, call, in_library, plan ? Reason::crowded : answer.reason,
                         request);
}

int initialise_exchange(Runtime& runtime, const Call& call, const Shape& shape,
                        Communicator& communicator, const KeptForRequest& kept,
                        MPI_Request* request) {
  constexpr CallId kId = CallId::Neighbor_alltoallw_init;
  const Algorithm& algorithm = replayed_algorithm(shape);
  const Engine asked = engine_for(runtime, communicator);
  const bool threads =
      runtime.threads_allowed() && asked != Engine::native && asked != Engine::function;
  Plan plan;
  plan.communicator = &communicator;
  plan.engine = threads ? Engine::thread : Engine::function;
  plan.needs = algorithm.needs;
  plan.bytes = local_bytes(shape);
  plan.use(std::make_shared<const Schedule>(build(algorithm, shape)));
  communicator.retain_for_request();
  auto memory = settle(runtime, kId, call, true, plan);
  if (!memory) memory.emplace();
  return initialise_settled(runtime, kId, call, plan, std::move(*memory), kept, request);
}

}  // namespace weft
