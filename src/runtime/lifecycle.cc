// Implements the start of Weft in MPI_Init and its end in MPI_Finalize. In MPI_Init the ranks agree
// on all settings that must be equal.
#include "runtime/lifecycle.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <span>

#include "base/first_rank.h"
#include "base/log.h"
#include "base/misspelt.h"
#include "library/failures.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/adaptive/call_classes.h"
#include "runtime/adaptive/learnt.h"
#include "runtime/call/pinned_pool.h"
#include "runtime/comm/agreement.h"
#include "runtime/comm/communicators.h"
#include "runtime/comm/internal_communicators.h"
#include "runtime/comm/self_communicator.h"
#include "runtime/job/bind.h"
#include "runtime/job/failures.h"
#include "runtime/job/whole_collectives.h"
#include "runtime/node/node_heaps.h"
#include "runtime/node/node_memory.h"
#include "runtime/node/reach.h"
#include "runtime/node/shared_core.h"
#include "runtime/node/thread_placement.h"
#include "runtime/request/accesses.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/requests.h"
#include "runtime/request/transfers.h"
#include "runtime/request/watchdog.h"
#include "runtime/request/windows.h"
#include "runtime/start/blocking.h"
#include "runtime/start/start.h"
#include "runtime/trace_file.h"
#include "runtime/trial/kept_plans.h"
#include "select/own_site.h"
#include "select/wire_facts.h"
#include "topo/placement.h"

namespace weft {
namespace {

// True in a forked child, in which the threads of its parent do not exist.
bool is_forked_child = false;

void stop_threads_at_exit() {
  Runtime* runtime = Runtime::active();
  if (runtime && !is_forked_child) runtime->stop_threads();
}

// Returns which collectives Weft carries out. If the ranks have requested different thread levels,
// these are none, since Weft's own collective calls in MPI_Init could hang.
Scope scope_of_job(const Config& config, const Start& start) {
  if (config.engine == Engine::native) return Scope::nothing;
  if (!may_keep_level(config) || !start.some_keep_level) return Scope::all;
  return start.all_keep_level && config.node_memory ? Scope::in_memory : Scope::nothing;
}

// Returns the settings that must be equal on all ranks. Besides Weft's own these are two of MPI
// libraries: I_MPI_COLL_INTRANODE decides how Intel MPI's collectives communicate, and
// mpi_ft_enable of Open MPI decides whether Weft carries out any collectives.
Facts facts_of_this_process(const Config& config, Library library, bool continues) {
  Facts facts = wire_facts(config);
  const char* const inside = several_may_run(library) ? "pt2pt" : "another";
  facts.push_back({"I_MPI_COLL_INTRANODE", inside, inside});
  const char* const after_failure = continues ? "on" : "off";
  facts.push_back({"mpi_ft_enable", after_failure, after_failure});
  return facts;
}

ThreadMay may_of_thread(Scope scope, const Start& start) {
  if (scope == Scope::in_memory) return ThreadMay::use_memory;
  return scope == Scope::all && start.all_have_multiple ? ThreadMay::do_all : ThreadMay::nothing;
}

// Returns how many cores the ranks have on the node where they have the fewest. It is collective
// over all ranks. The ranks' CPU sets are compared only if there are more CPUs than ranks.
CoreSubscription core_subscription(int rank) {
  int ranks = 1;
  library_calls.Comm_size(handles.comm_world, &ranks);
  int cpus = rank == 0 ? static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) : 0;
  library_calls.Bcast(&cpus, sizeof cpus, handles.byte, 0, handles.comm_world);
  if (ranks >= cpus)
    return ranks > cpus ? CoreSubscription::cores_are_shared : CoreSubscription::a_core_each;
  std::map<std::vector<int>, std::size_t> ranks_on;
  for (const auto& own : gather_allowed_cpus(handles.comm_world, ranks)) ++ranks_on[own];
  CoreSubscription least = CoreSubscription::a_core_to_spare;
  for (const auto& [own, count] : ranks_on) {
    if (count >= own.size()) least = std::min(least, CoreSubscription::a_core_each);
    if (count > own.size()) least = CoreSubscription::cores_are_shared;
  }
  return least;
}

// The stack of the thread that advances collectives in shared memory only. The thread runs no MPI
// library code, but it may call a GPU's driver. Unlike a stack from the system, this array costs no
// system calls, and takes no memory until it is used.
alignas(kPageBytes) std::array<std::byte, 256 * kPageBytes> stack_in_memory;

bool may_tune(const Config& config, Scope scope) {
  return scope != Scope::nothing && config.init_budget_us > 0;
}

constexpr const char* kNoBaton =
    "there is no back-off baton any more: quiet is used; with --engine agent one thread serves all "
    "ranks whose threads share a core";

Config possible(Config config, Library library) {
  config.engine = possible_in_place_of(config.engine, library, handles.comm_world);
  return config;
}

}  // namespace

void Lifecycle::begin(const Config& asked, int asked_level, int thread_level, bool level_kept) {
  const auto bound = bind_library();
  if (!bound) {
    say(bound.error().message);
    return;
  }
  const Library library = identify_library();
  const Config wanted = possible(asked, library);
  const bool continues = continues_after_failures();
  const Start start = agree_on_start(facts_of_this_process(wanted, library, continues),
                                     {level_kept, level_kept, thread_level == MPI_THREAD_MULTIPLE});
  const Config config = continues ? left_to_library(wanted) : wanted;
  const Scope scope = scope_of_job(config, start);
  const ThreadMay thread_may = may_of_thread(scope, start);
  own_requests.make();
  own_inline_call.make();
  // The object is never destroyed, because threads and MPI callbacks may use it while the process
  // exits. This variable still points to it after MPI_Finalize, so that leak checkers do not report
  // it.
  [[gnu::used]] static Lifecycle* runtime;
  runtime = new Lifecycle(config, library, thread_may, scope);
  runtime->several_threads_ = asked_level == MPI_THREAD_MULTIPLE;
  runtime->several_callers_ = asked_level == MPI_THREAD_MULTIPLE &&
                              thread_level == MPI_THREAD_MULTIPLE && runtime->takes_all();
  runtime->level_is_raised_ =
      asked_level < MPI_THREAD_MULTIPLE && thread_level == MPI_THREAD_MULTIPLE;
  runtime->may_have_threads_ = thread_level == MPI_THREAD_MULTIPLE;
  if (runtime->several_callers_) runtime->progress.expect_several_callers();
  const bool threads_wanted = scope == Scope::all && config.engine != Engine::function;
  int rank = 0;
  library_calls.Comm_rank(handles.comm_world, &rank);
  if (rank == 0)
    for (const std::string& sentence : misspelt_variables(environ)) say(sentence);
  if (rank == 0 && !own_site().mistake.empty()) say(own_site().mistake);
  if (rank == 0 && config.asks_for_baton) say(kNoBaton);
  if (rank == 0 && continues && leaves_something(wanted)) say(kLeftToLibrary);
  if (threads_wanted && !runtime->threads_allowed() && rank == 0)
    say("the MPI library grants no MPI_THREAD_MULTIPLE: engine function is used in place of " +
        std::string(engine_name(config.engine)));
  if (runtime->observing()) runtime->reports_ = communicator_like(handles.comm_world);
  if (!config.trace_file.empty()) runtime->begin_track();
  begin_internal_communicators(static_cast<int>(runtime->tags_));
  if (!runtime->native()) runtime->agree_on_all(rank, asked_level);
  pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
  std::atexit(stop_threads_at_exit);
  runtime->take_calls(rank);
}

// Prepares the threads, the shared memory of each node, the data on MPI_COMM_WORLD, and the file of
// plans. It is collective over all ranks.
void Lifecycle::agree_on_all(int rank, int asked_level) {
  place_threads();
  if (config.engine == Engine::agent && threads_allowed()) share_cores();
  if (learns_by_messages()) share_cores();
  if (thread_may_ != ThreadMay::nothing) agree_on_threads(rank, asked_level);
  if (learns_by_messages()) agree_on_variants();
  if (has_memory_thread()) core_subscription_ = core_subscription(rank);
  if (config.node_memory) find_nodes(config, plans);
  make_common();
  add_communicator(*this, handles.comm_world, {});
  prepare_initialisations(rank);
}

void Lifecycle::take_calls(int rank) {
  active_.store(this, std::memory_order_release);
  blocking_taken.store(wants_blocking() && !native(), std::memory_order_release);
  if (drives_transfers()) least_transfer_bytes.store(config.least_transfer_bytes);
  if (config.passive_windows) follow_windows(rank);
  if (lets_pass_through()) passthrough_epoch.store(1);
  begin_epoch();
  if (config.watchdog_s > 0) start_watchdog(config.watchdog_s, rank);
}

// Returns why passive-target accesses to windows cannot be progressed; "" if they can. Progressing
// them means that the progress thread polls for most of the run. Under Open MPI that is unsafe,
// because it searches its list of file accesses without a lock (transfers.h).
std::string Lifecycle::why_no_windows() const {
  if (library == Library::openmpi)
    return "Open MPI's file accesses tolerate no second thread; run the program under MPICH or "
           "Intel MPI";
  if (native()) return "the MPI library carries everything out alone; name another engine";
  return threads_allowed() ? "" : "no thread may call the MPI library";
}

void Lifecycle::follow_windows(int rank) {
  const std::string why = why_no_windows();
  windows_are_followed.store(why.empty());
  if (!why.empty() && rank == 0)
    say("windows that other ranks lock are not looked after (--windows passive): " + why);
}

// Does work of about 100 us that would otherwise fall into the first initialisation of a persistent
// collective, the time for which is limited.
void Lifecycle::prepare_initialisations(int rank) {
  self_communicator();
  if ((may_tune(config, scope_) || learns()) && rank == 0) {
    platform();
    plans.read();
  }
  if (learns()) Learnt::own().read(*this);
}

void Lifecycle::place_threads() {
  if (config.placement.kind == PlacementPolicy::Kind::bind) return;
  std::string misfit;
  on_each_node(handles.comm_world, [&](MPI_Comm node) {
    const NodePlacement found = placement_on(node, config.placement);
    misfit = found.misfit;
    core_of_thread_ = found.core_of_thread;
    thread_core_ = core_of_thread_[static_cast<std::size_t>(found.local_rank)];
    if (thread_core_ >= 0) node_cores_ = found.cores;
  });
  end_job_if_refused(misfit);
}

// Collective: starts the core agents, and agrees on whether the first rank of each node has one.
void Lifecycle::share_cores() {
  why_no_agent_ = AgentOfCore::kNoCoreIsShared;
  if (config.placement.kind == PlacementPolicy::Kind::bind) return;
  std::int64_t lacks_agent = 0;
  on_each_node(handles.comm_world, [&](MPI_Comm node) {
    int local_rank = 0, ranks = 1;
    library_calls.Comm_rank(node, &local_rank);
    library_calls.Comm_size(node, &ranks);
    AgentOfCore found =
        agent_for(node, local_rank, core_of_thread_, progress, completions_are_ours());
    agent_ = std::move(found.agent);
    why_no_agent_ = std::move(found.why_none);
    const bool is_scarce = share_cpus(gather_allowed_cpus(node, ranks));
    if (is_scarce && progress.has_mailbox()) progress.sleep_in_waits();
    lacks_agent = local_rank == 0 && ranks > 1 && !why_no_agent_.empty() ? 1 : 0;
  });
  std::int64_t some_lack = 0;
  library_calls.Allreduce(&lacks_agent, &some_lack, 1, handles.int64, handles.max,
                          handles.comm_world);
  resources_.agents_lead = some_lack == 0;
}

void Lifecycle::agent_has_ended() {
  abort_job(
      "the process whose thread served this rank has ended in the midst of a collective of this "
      "rank's, which cannot be completed: the program ends");
}

// Starts the progress threads; collective over all ranks. If one rank cannot start its thread, no
// rank uses one: without threads a blocking call is made in its non-blocking form, and all ranks
// must use the same form. The lowest such rank prints the reason.
void Lifecycle::agree_on_threads(int rank, int asked_level) {
  const auto started = progress.start(takes_all() ? std::span<std::byte>() : stack_in_memory);
  // A thread that makes no MPI calls cannot complete requests. The application's completion calls
  // complete them, so Weft must see all of those.
  const bool usable = started && (takes_all() || completions_are_ours());
  int ranks = 1;
  library_calls.Comm_size(handles.comm_world, &ranks);
  const std::array<std::int64_t, 2> own{usable ? -ranks : -rank,
                                        asked_level < MPI_THREAD_MULTIPLE ? 1 : 0};
  std::array<std::int64_t, 2> greatest{};
  library_calls.Allreduce(own.data(), greatest.data(), static_cast<int>(own.size()), handles.int64,
                          handles.max, handles.comm_world);
  const auto [first_without, below] = greatest;
  const Lacking who = lacking(static_cast<int>(-first_without), ranks, rank);
  operators_stay_ = who == Lacking::nobody && below > 0;
  if (who == Lacking::nobody) return;
  thread_may_ = ThreadMay::nothing;
  progress.go_without_thread();
  const std::string effect = takes_all() ? "collectives go on inside MPI calls only"
                                         : "collectives that need one go to the MPI library";
  if (!started && who == Lacking::this_rank_first)
    say("rank " + std::to_string(rank) + " gets no progress thread (" + started.error().message +
        "): no rank uses one, and " + effect + "; raise 'ulimit -u' to get one");
}

// Lets the ranks agree on what engine auto may try; collective. With placement `bind` all threads
// stay on their ranks' cores, so that there are neither core agents nor free cores.
void Lifecycle::agree_on_variants() {
  if (config.placement.kind == PlacementPolicy::Kind::bind) return;
  const bool by_model = config.split_levels == Config::kByModel;
  const NodeCores& cores = node_cores_;
  const std::array<std::int64_t, 6> own{cores.free,       -cores.free,
                                        cores.ranks,      -cores.ranks,
                                        by_model ? 0 : 1, progress.has_mailbox() ? 1 : 0};
  std::array<std::int64_t, 6> greatest{};
  library_calls.Allreduce(own.data(), greatest.data(), static_cast<int>(own.size()), handles.int64,
                          handles.max, handles.comm_world);
  const bool alike = greatest[0] == -greatest[1] && greatest[2] == -greatest[3];
  if (alike && greatest[4] == 0) resources_.cores = cores;
  resources_.agents = greatest[5] != 0;
}

// Makes the MPI library progress its messages, by a probe with a tag that nobody uses. The probe
// must not find a message, and the communicator must have several ranks; otherwise some libraries
// return at once without any progress.
void Lifecycle::keep_library_going() {
  const Communicator* world = Communicators::own().find(handles.comm_world);
  if (!world) return;
  int found = 0;
  const int unused_tag = static_cast<int>(tags_);
  library_calls.Iprobe(MPI_ANY_SOURCE, unused_tag, world->internal, &found, MPI_STATUS_IGNORE);
}

namespace {

// Collects what engine auto has learnt. Unfinished comparisons between ranks must be completed
// first, since no request of the application waits for them. All ranks have started the same ones.
void communicators_learnt(Runtime& runtime) {
  if (runtime.learns_by_messages()) finish_comparisons(runtime);
  for (const auto& communicator : Communicators::own().all()) Learnt::own().note(*communicator);
}

}  // namespace

void Lifecycle::end() {
  Lifecycle* runtime = current();
  if (!runtime) return;
  nothing_passes_through();
  runtime->stop_threads();
  InlineCall::own().end();
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(handles.comm_world, &rank);
  library_calls.Comm_size(handles.comm_world, &ranks);
  settle_incomplete(*runtime, rank);
  if (runtime->learns()) communicators_learnt(*runtime);
  free_self_communicator();
  runtime->summary.end();
  const bool is_kept = runtime->keep_plans_of_all(rank);
  runtime->report(rank, ranks, is_kept);
  const std::string& trace = runtime->config.trace_file;
  if (!trace.empty()) write_trace(runtime->trace_, trace, runtime->reports_, rank, ranks);
  if (runtime->observing()) library_calls.Comm_free(&runtime->reports_);
  for (const auto& communicator : Communicators::own().all()) forget_comparisons(*communicator);
  Communicators::own().free_all();
  PinnedPool::own().release();
  stand_aside();
}

void Lifecycle::report(int rank, int ranks, bool is_kept) {
  static constexpr const char* kLibraryWords[] = {"MPICH", "Open MPI", "Intel MPI", "MPI"};
  LearntReport learnt = Learnt::own().report(trial_budget);
  learnt.is_kept = is_kept;
  summary.report(config, remark(), kLibraryWords[static_cast<std::size_t>(library)],
                 {Transfers::own().count() + Accesses::own().count(), Windows::own().count(),
                  one_copy() ? one_copy()->copied_bytes() : 0, progress.ended_by_agent(),
                  several_threads_ ? 1 : 0},
                 learnt, reports_, rank, ranks);
}

// Writes the measured plans to the file. Rank 0 gathers and writes those of all ranks. But if a
// worker thread may still be inside a collective of the MPI library, each rank writes its own,
// since the gather could match that collective. On rank 0 the function returns whether later runs
// will find the plans.
bool Lifecycle::keep_plans_of_all(int rank) {
  const std::string lines = plans.take_lines(Learnt::own().plans(config));
  const PlanCache::Written written =
      Communicators::own().world_has_worker() ? plans.write(lines) : keep_plans(plans, lines);
  if (rank == 0 && !written.why.empty()) say(written.why);
  return written.is_kept;
}

std::string Lifecycle::remark() const {
  if (config.engine == Engine::agent && !why_no_agent_.empty())
    return "engine agent does what engine thread does on rank 0: " + why_no_agent_;
  if (scope_ != Scope::all && config.engine != Engine::native) return kLevelKept;
  const bool by_messages = library == Library::intelmpi && config.engine == Engine::tcc;
  return by_messages ? kWholeByMessages : "";
}

void Lifecycle::nothing_passes_through() {
  passthrough_epoch.store(0);
  least_transfer_bytes.store(kNoTransfers);
  windows_are_followed.store(false);
  begin_epoch();
}

void Lifecycle::stand_aside() {
  blocking_taken.store(false, std::memory_order_release);
  active_.store(nullptr, std::memory_order_release);
}

// Returns whether threads must stop calling MPI before MPI_Finalize. They must under MPICH and its
// derivatives, which take no locks once MPI_Finalize has begun, even while callbacks of the
// application run. Open MPI still takes its locks.
bool Lifecycle::loses_threads_in_finalize() {
  const Lifecycle* runtime = current();
  return runtime && runtime->threads_allowed() && runtime->library != Library::openmpi &&
         !runtime->only_callers_advance();
}

void Lifecycle::finalize_begins() {
  if (!loses_threads_in_finalize()) return;
  Lifecycle* runtime = current();
  nothing_passes_through();
  let_workers_end(*runtime);
  runtime->only_callers_advance_.store(true);
  runtime->stop_threads();
}

// Ends Weft if end() was not called, and reports that there is no summary. This happens with Open
// MPI if a delete callback of the application fails in MPI_Finalize: Open MPI then skips the
// remaining callbacks, which include Weft's.
void Lifecycle::end_without_library() {
  Lifecycle* runtime = current();
  if (!runtime) return;
  nothing_passes_through();
  runtime->stop_threads();
  stand_aside();
  if (runtime->observing() && is_first_rank())
    say("no summary and no trace: a delete callback of MPI_COMM_SELF has failed in MPI_Finalize, "
        "after which the MPI library calls no other; let it return MPI_SUCCESS");
}

}  // namespace weft
