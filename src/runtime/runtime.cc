// Begins and ends Weft's part in a process, and prepares its threads.
#include "runtime/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>

#include "base/clock.h"
#include "base/log.h"
#include "base/misspelt.h"
#include "base/this_thread.h"
#include "base/whole_file.h"
#include "library/failures.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "library/search.h"
#include "runtime/comm/agreement.h"
#include "runtime/comm/self_communicator.h"
#include "runtime/job/bind.h"
#include "runtime/job/failures.h"
#include "runtime/job/whole_collectives.h"
#include "runtime/node/shared_core.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/persistent.h"
#include "runtime/request/watchdog.h"
#include "runtime/start/start.h"
#include "runtime/trial/kept_plans.h"
#include "select/wire_facts.h"
#include "topo/machine.h"
#include "topo/placement.h"

namespace weft {
namespace {

thread_local Trace::Track* own_track = nullptr;

const char* activity_name(Activity what) {
  switch (what) {
    case Activity::working:
      return "working";
    case Activity::polling:
      return "polling";
    case Activity::asleep:
      return "asleep";
  }
  return "";
}

std::uint32_t usable_tags() {
  int* upper_bound = nullptr;
  int found = 0;
  library_calls.Comm_get_attr(handles.comm_world, MPI_TAG_UB, &upper_bound, &found);
  return found && *upper_bound > 0 ? static_cast<std::uint32_t>(*upper_bound) : 32767;
}

// Returns the CPUs that each rank of this node may run on.
std::vector<std::vector<int>> gather_allowed_cpus(MPI_Comm node, int ranks) {
  std::vector<std::uint8_t> mine(CPU_SETSIZE, 0);
  for (const int cpu : allowed_cpus()) mine[static_cast<std::size_t>(cpu)] = 1;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(ranks) * mine.size());
  library_calls.Allgather(mine.data(), CPU_SETSIZE, handles.byte, all.data(), CPU_SETSIZE,
                          handles.byte, node);
  std::vector<std::vector<int>> cpus(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]) cpus[i / CPU_SETSIZE].push_back(static_cast<int>(i % CPU_SETSIZE));
  return cpus;
}

void move_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
    say("core " + std::to_string(core) +
        " is not available to this process: its progress thread stays beside the rank");
}

// A forked child that exits has none of the parent's threads.
bool is_forked_child = false;

void stop_threads_at_exit() {
  Runtime* runtime = Runtime::active();
  if (runtime && !is_forked_child) runtime->stop_threads();
}

// Rank 0 collects the ranks' texts one by one, so that it needs no shared file system and memory
// for only one text. The other ranks must send theirs even if nothing can be written.
void write_texts_of_all(const std::string& own, MPI_Comm all, int ranks, WholeFile& file) {
  file.add(own);
  for (int rank = 1; rank < ranks; ++rank) {
    std::int64_t bytes = 0;
    library_calls.Recv(&bytes, sizeof bytes, handles.byte, rank, 0, all, MPI_STATUS_IGNORE);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    library_calls.Recv(text.data(), static_cast<int>(bytes), handles.byte, rank, 0, all,
                       MPI_STATUS_IGNORE);
    file.add(",\n" + text);
  }
}

// If ranks have asked for different levels nothing is Weft's: its own collectives could hang.
Scope scope_of_job(const Config& config, const Start& start) {
  if (config.engine == Engine::native) return Scope::nothing;
  if (!may_keep_level(config) || !start.some_keep_level) return Scope::all;
  return start.all_keep_level && config.node_memory ? Scope::in_memory : Scope::nothing;
}

// Returns facts that must be equal on all ranks. The variable decides how Intel MPI's collectives
// travel, Open MPI's parameter whether any collective is Weft's.
Facts facts_of_this_process(const Config& config, Library library, bool goes_on) {
  Facts facts = wire_facts(config);
  const char* const inside = several_may_run(library) ? "pt2pt" : "another";
  facts.push_back({"I_MPI_COLL_INTRANODE", inside, inside});
  const char* const after_failure = goes_on ? "on" : "off";
  facts.push_back({"mpi_ft_enable", after_failure, after_failure});
  return facts;
}

ThreadMay may_of_thread(Scope scope, const Start& start) {
  if (scope == Scope::in_memory) return ThreadMay::use_memory;
  return scope == Scope::all && start.all_have_multiple ? ThreadMay::do_all : ThreadMay::nothing;
}

// Collective over the ranks of one node: returns the least room of any node. CPUs are not gathered
// if there are so many ranks that none can have one to spare.
Room room_of_ranks(int rank) {
  int ranks = 1;
  library_calls.Comm_size(handles.comm_world, &ranks);
  int cpus = rank == 0 ? static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) : 0;
  library_calls.Bcast(&cpus, sizeof cpus, handles.byte, 0, handles.comm_world);
  if (ranks >= cpus) return ranks > cpus ? Room::cores_are_shared : Room::a_core_each;
  std::map<std::vector<int>, std::size_t> ranks_on;
  for (const auto& own : gather_allowed_cpus(handles.comm_world, ranks)) ++ranks_on[own];
  Room least = Room::a_core_to_spare;
  for (const auto& [own, count] : ranks_on) {
    if (count >= own.size()) least = std::min(least, Room::a_core_each);
    if (count > own.size()) least = Room::cores_are_shared;
  }
  return least;
}

// The stack of a thread that carries out operations in memory only. It runs no code of the
// library's, and of the application's at most fault handlers. Mapping one takes system calls; this
// costs nothing until it is used.
alignas(kPageBytes) std::array<std::byte, 64 * kPageBytes> stack_in_memory;

bool may_tune(const Config& config, Scope scope) {
  return scope != Scope::nothing && config.init_budget_us > 0;
}

void send_text(const std::string& own, MPI_Comm all) {
  const auto bytes = static_cast<std::int64_t>(own.size());
  library_calls.Send(&bytes, sizeof bytes, handles.byte, 0, 0, all);
  library_calls.Send(own.data(), static_cast<int>(bytes), handles.byte, 0, 0, all);
}

// Returns the engine asked for; `thread` in place of tcc if that is impossible.
Engine possible_in_place_of(Engine asked, Library library, MPI_Comm comm) {
  if (asked != Engine::tcc || several_may_run(library)) return asked;
  static std::atomic<bool> said{false};
  int rank = 0;
  library_calls.Comm_rank(comm, &rank);
  if (rank == 0 && !said.exchange(true))
    say(std::string("engine thread is used in place of tcc: ") + kWhySeveralMayNotRun);
  return Engine::thread;
}

Config possible(Config config, Library library) {
  config.engine = possible_in_place_of(config.engine, library, handles.comm_world);
  return config;
}

bool wants_blocking(const Config& config) {
  const bool by_rule = config.blocking == Config::Blocking::by_rule;
  return by_rule ? config.engine == Engine::automatic : config.blocking == Config::Blocking::always;
}

}  // namespace

Runtime::Runtime(const Config& config, Library library, ThreadMay thread_may, Scope scope)
    : config(config),
      library(library),
      summary(config.summary || !config.summary_json_file.empty()),
      plans(config.plan_cache_file),
      trial_budget(config.learning_budget, now_ns()),
      progress(config.backoff, thread_may, *this),
      thread_may_(thread_may),
      scope_(scope),
      observing_(config.summary || !config.summary_json_file.empty() || !config.trace_file.empty()),
      completions_are_ours_(first_in_chain()),
      tags_(usable_tags()) {}

void Runtime::begin(const Config& asked, int asked_level, int thread_level, bool level_kept) {
  const auto bound = bind_library();
  if (!bound) {
    say(bound.error().message);
    return;
  }
  const Library library = identify_library();
  const Config wanted = possible(asked, library);
  const bool goes_on = goes_on_after_failures();
  const Start start = agree_on_start(facts_of_this_process(wanted, library, goes_on),
                                     {level_kept, level_kept, thread_level == MPI_THREAD_MULTIPLE});
  const Config config = goes_on ? left_to_library(wanted) : wanted;
  const Scope scope = scope_of_job(config, start);
  const ThreadMay thread_may = may_of_thread(scope, start);
  // The runtime is never destroyed: threads and MPI callbacks may use it while the process exits.
  // Leak checkers find it through this variable after MPI_Finalize.
  [[gnu::used]] static Runtime* runtime;
  runtime = new Runtime(config, library, thread_may, scope);
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
  if (rank == 0 && goes_on && leaves_something(wanted)) say(kLeftToLibrary);
  if (threads_wanted && !runtime->threads_allowed() && rank == 0)
    say("the MPI library grants no MPI_THREAD_MULTIPLE: engine function is used in place of " +
        std::string(engine_name(config.engine)));
  if (runtime->observing()) runtime->reports_ = communicator_like(handles.comm_world);
  if (!config.trace_file.empty()) own_track = runtime->trace_.add_track("application", true);
  begin_shadows(static_cast<int>(runtime->tags_));
  if (!runtime->native()) {
    runtime->place_threads();
    if (config.engine == Engine::agent && runtime->threads_allowed()) runtime->share_cores();
    if (runtime->learns_by_messages()) runtime->share_cores();
    if (thread_may != ThreadMay::nothing) runtime->agree_on_threads(rank, asked_level);
    if (runtime->learns_by_messages()) runtime->agree_on_ways();
    if (runtime->has_memory_thread()) runtime->room_ = room_of_ranks(rank);
    if (config.node_memory) find_nodes(config, runtime->plans);
    make_common();
    runtime->add_communicator(handles.comm_world, {});
    runtime->prepare_initialisations(rank);
  }
  pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
  std::atexit(stop_threads_at_exit);
  active_.store(runtime, std::memory_order_release);
  blocking_taken.store(wants_blocking(config) && !runtime->native(), std::memory_order_release);
  if (runtime->drives_transfers()) least_transfer_bytes.store(config.least_transfer_bytes);
  if (runtime->lets_straight_on()) straight_epoch.store(1);
  begin_epoch();
  if (config.watchdog_s > 0) start_watchdog(config.watchdog_s, rank);
}

// Does what takes a tenth of a millisecond, which the first persistent initialisation could not
// spare.
void Runtime::prepare_initialisations(int rank) {
  self_communicator();
  if ((may_tune(config, scope_) || learns()) && rank == 0) {
    platform();
    plans.read();
  }
  if (learns()) learnt.read(*this);
}

const std::string& Runtime::platform() {
  static const std::string words = machine_words() + ", " + library_words();
  return words;
}

bool Runtime::may_learn() const {
  return config.engine == Engine::automatic && wants_blocking(config) && config.learn != Learn::off;
}

bool Runtime::learns_by_messages() const {
  return takes_all() && threads_allowed() && may_learn();
}

bool Runtime::learns_in_memory() const {
  return in_memory_only() && has_memory_thread() && may_learn();
}

namespace {

struct NodePlacement {
  int local_rank = 0;
  NodeCores cores;
  std::vector<int> core_of_thread;  // by local rank; -1: beside its rank
  std::string misfit;               // why the policy cannot be meant for this node
};

// Collective over the ranks of a node. The result is equal on all of them, except their own
// numbers. If the policy cannot be followed, the first rank says why.
NodePlacement placement_on(MPI_Comm node, const PlacementPolicy& policy) {
  NodePlacement found;
  library_calls.Comm_rank(node, &found.local_rank);
  library_calls.Comm_size(node, &found.cores.ranks);
  const auto cpus_of_rank = gather_allowed_cpus(node, found.cores.ranks);
  found.core_of_thread.assign(cpus_of_rank.size(), -1);
  const auto give_up = [&](const std::string& why) {
    if (found.local_rank == 0) say(why);
    found.core_of_thread.assign(cpus_of_rank.size(), -1);
    return found;
  };
  const auto read = read_topology();
  if (!read && policy.kind != PlacementPolicy::Kind::list) return give_up(read.error().message);
  const Topology topology = read ? *read : Topology{};
  const NodeRanks ranks = ranks_on(topology, cpus_of_rank);
  if (const auto fitting = fits(policy, topology, ranks); !fitting) {
    found.misfit = fitting.error().message;
    if (read) found.misfit += " (" + picture(topology, ranks) + ")";
    return found;
  }
  for (int rank = 0; rank < found.cores.ranks; ++rank) {
    const auto core = place(policy, topology, ranks, rank);
    if (!core) return give_up(core.error().message + "; progress threads stay beside their ranks");
    found.core_of_thread[static_cast<std::size_t>(rank)] = *core;
  }
  found.cores.free = static_cast<int>(free_cores(topology, ranks).size());
  return found;
}

// Collective over `comm`.
template <class Use>
void on_each_node(MPI_Comm comm, Use use) {
  MPI_Comm node;
  library_calls.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, handles.info_null, &node);
  use(node);
  library_calls.Comm_free(&node);
}

}  // namespace

int Runtime::core_for(const PlacementPolicy& policy, MPI_Comm comm) {
  if (policy.kind == PlacementPolicy::Kind::bind) return -1;
  int core = -1;
  on_each_node(comm, [&](MPI_Comm node) {
    const NodePlacement found = placement_on(node, policy);
    if (!found.misfit.empty() && found.local_rank == 0)
      say(found.misfit + "; the threads of this communicator stay beside their ranks");
    core = found.core_of_thread[static_cast<std::size_t>(found.local_rank)];
  });
  return core;
}

void Runtime::place_threads() {
  if (config.placement.kind == PlacementPolicy::Kind::bind) return;
  std::string misfit;
  on_each_node(handles.comm_world, [&](MPI_Comm node) {
    const NodePlacement found = placement_on(node, config.placement);
    misfit = found.misfit;
    core_of_thread_ = found.core_of_thread;
    thread_core_ = core_of_thread_[static_cast<std::size_t>(found.local_rank)];
    if (thread_core_ >= 0) node_cores_ = found.cores;
    if (config.backoff.kind == BackOff::Kind::baton)
      progress.use(baton_for(node, found.local_rank, found.core_of_thread));
  });
  end_job_if_refused(misfit);
}

// Collective. Completion calls find the end of what an agent carries out, so that all of these must
// be seen.
void Runtime::share_cores() {
  why_no_agent_ = AgentOfCore().why_none();
  if (config.placement.kind == PlacementPolicy::Kind::bind) return;
  on_each_node(handles.comm_world, [&](MPI_Comm node) {
    int local_rank = 0;
    library_calls.Comm_rank(node, &local_rank);
    AgentOfCore found = agent_for(node, local_rank, core_of_thread_, *this);
    agent_ = std::move(found.agent);
    if (!found.desk) {
      why_no_agent_ = found.why_none();
    } else if (!completions_are_ours()) {
      why_no_agent_ = "another tool is before Weft";
    } else {
      why_no_agent_.clear();
      progress.use(std::move(*found.desk));
    }
  });
}

void Runtime::stop_threads() {
  progress.stop();
  if (agent_) agent_->stop();
}

void Runtime::agent_has_ended() {
  abort_job(
      "the process whose thread served this rank has ended in the midst of a collective of this "
      "rank's, which cannot be completed: the program ends");
}

// Collective: if one rank lacks a thread all do without, since blocking calls are then made in a
// form that must be the same everywhere. The first such rank says why.
void Runtime::agree_on_threads(int rank, int asked_level) {
  const auto started = progress.start(takes_all() ? std::span<std::byte>() : stack_in_memory);
  // Operations that a thread without MPI calls has advanced are completed in the application's
  // calls.
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
  if (agent_) agent_->stop();
  const std::string effect = takes_all() ? "collectives go on inside MPI calls only"
                                         : "collectives that need one go to the MPI library";
  if (!started && who == Lacking::this_rank_first)
    say("rank " + std::to_string(rank) + " gets no progress thread (" + started.error().message +
        "): no rank uses one, and " + effect + "; raise 'ulimit -u' to get one");
}

// Collective. If all threads stay beside their ranks there is neither an agent nor a free core.
void Runtime::agree_on_ways() {
  if (config.placement.kind == PlacementPolicy::Kind::bind) return;
  const bool by_model = config.split_levels == Config::kByModel;
  const NodeCores& cores = node_cores_;
  const std::array<std::int64_t, 6> own{cores.free,       -cores.free,
                                        cores.ranks,      -cores.ranks,
                                        by_model ? 0 : 1, progress.has_desk() ? 1 : 0};
  std::array<std::int64_t, 6> greatest{};
  library_calls.Allreduce(own.data(), greatest.data(), static_cast<int>(own.size()), handles.int64,
                          handles.max, handles.comm_world);
  const bool alike = greatest[0] == -greatest[1] && greatest[2] == -greatest[3];
  if (alike && greatest[4] == 0) beside_.cores = cores;
  beside_.agents = greatest[5] != 0;
}

namespace {

bool wants_leaders(const std::array<std::string, kKinds>& algorithms) {
  return std::any_of(algorithms.begin(), algorithms.end(),
                     [](const std::string& name) { return name == kByLeaders; });
}

}  // namespace

void Runtime::add_communicator(MPI_Comm comm, const Hints& asked) {
  Hints hints = asked;
  if (hints.engine) hints.engine = possible_in_place_of(*hints.engine, library, comm);
  const Engine engine = hints.engine.value_or(config.engine);
  const bool worker = threads_allowed() && engine == Engine::tcc;
  Communicators::Wanted wanted;
  wanted.leaders = wants_leaders(config.algorithm) || wants_leaders(hints.algorithm);
  if (worker) wanted.worker_for = this;
  if (worker && hints.placement) wanted.worker_core = core_for(*hints.placement, comm);
  const bool whole = worker || (threads_allowed() && engine == Engine::assist);
  if (wanted.leaders || whole)
    wanted.most_own = kMostOwn;
  else if (learns_by_messages() && engine == Engine::automatic)
    wanted.most_own = kMostThatTry;
  communicators.add(comm, hints, wanted);
}

Engine Runtime::engine_for(const Communicator& communicator) const {
  const Engine asked = communicator.hints.engine.value_or(config.engine);
  const bool whole = asked == Engine::tcc || asked == Engine::assist;
  return whole && !communicator.has_own ? Engine::thread : asked;
}

Trace::Track* Runtime::application_track() {
  if (config.trace_file.empty()) return nullptr;
  if (!own_track) own_track = trace_.add_track("application thread", true);
  return own_track;
}

void Runtime::thread_started(const char* name, int index) {
  this_thread.is = kInside;
  const std::string full = "weft-" + std::string(name) + (index > 0 ? std::to_string(index) : "");
  pthread_setname_np(pthread_self(), full.substr(0, 15).c_str());
  if (thread_core_ >= 0) move_to_core(thread_core_);
  if (!config.trace_file.empty()) own_track = trace_.add_track(full, false);
}

void Runtime::moves_to(int core) {
  move_to_core(core);
}

void Runtime::activity(Activity what) {
  if (own_track) own_track->change(activity_name(what), now_ns());
}

// Probes for a message that nobody sends: on a communicator of one rank, or if a message is there,
// some libraries answer without progressing other operations.
void Runtime::keep_library_going() {
  const Communicator* world = communicators.find(handles.comm_world);
  if (!world) return;
  int found = 0;
  const int unused_tag = static_cast<int>(tags_);
  library_calls.Iprobe(MPI_ANY_SOURCE, unused_tag, world->shadow, &found, MPI_STATUS_IGNORE);
}

namespace {

// Comparisons by messages belong to no request; all ranks have begun the same ones.
void communicators_learnt(Runtime& runtime) {
  if (runtime.learns_by_messages()) finish_comparisons(runtime);
  for (const auto& communicator : runtime.communicators.all()) runtime.learnt.note(*communicator);
}

}  // namespace

void Runtime::end() {
  Runtime* runtime = active();
  if (!runtime) return;
  nothing_goes_straight();
  runtime->stop_threads();
  runtime->in_hand.end();
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(handles.comm_world, &rank);
  library_calls.Comm_size(handles.comm_world, &ranks);
  settle_incomplete(*runtime, rank);
  if (runtime->learns()) communicators_learnt(*runtime);
  free_self_communicator();
  static constexpr const char* kLibraryWords[] = {"MPICH", "Open MPI", "Intel MPI", "MPI"};
  runtime->summary.report(
      runtime->config, runtime->remark(), kLibraryWords[static_cast<std::size_t>(runtime->library)],
      {runtime->transfers.count() + runtime->accesses.count(),
       one_copy() ? one_copy()->copied_bytes() : 0, runtime->progress.ended_by_agent()},
      runtime->learnt.report(runtime->trial_budget), runtime->reports_, rank, ranks);
  const std::string plans = runtime->plans.take_lines(runtime->learnt.plans(runtime->config));
  const std::string not_kept = runtime->communicators.world_has_worker()
                                   ? runtime->plans.write(plans)
                                   : keep_plans(runtime->plans, plans);
  if (rank == 0 && !not_kept.empty()) say(not_kept);
  if (!runtime->config.trace_file.empty()) runtime->write_trace(rank, ranks);
  if (runtime->observing()) library_calls.Comm_free(&runtime->reports_);
  runtime->communicators.free_all();
  runtime->stand_aside();
}

bool Runtime::lets_straight_on() const {
  return !several_callers_ && config.watchdog_s == 0 && library_is_next(&from_library);
}

std::string Runtime::remark() const {
  if (config.engine == Engine::agent && !why_no_agent_.empty())
    return "engine agent does what engine thread does on rank 0: " + why_no_agent_;
  if (scope_ != Scope::all && config.engine != Engine::native) return kLevelKept;
  const bool by_messages = library == Library::intelmpi && config.engine == Engine::tcc;
  return by_messages ? kWholeByMessages : "";
}

// Clocks of different nodes are aligned at the barrier before the texts are collected.
void Runtime::write_trace(int rank, int ranks) {
  library_calls.Barrier(reports_);
  const std::int64_t here = now_ns();
  std::int64_t at_root = here;
  library_calls.Bcast(&at_root, sizeof at_root, handles.byte, 0, reports_);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  // Processes of one machine share the clock; a small difference is the barrier's.
  const std::int64_t offset = std::abs(at_root - here) < 1'000'000'000 ? 0 : at_root - here;
  const std::string events = trace_.events_json(rank, host, offset, here);
  if (rank != 0) {
    send_text(events, reports_);
    return;
  }
  WholeFile file(config.trace_file);
  file.add("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  write_texts_of_all(events, reports_, ranks, file);
  file.add("\n]}\n");
  if (const int error = file.finish()) say(not_written("the trace", config.trace_file, error));
}

}  // namespace weft
