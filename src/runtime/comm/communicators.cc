// Keeps Weft's data on communicators, from the calls that create them to those that free them.
#include "runtime/comm/communicators.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "coll/algorithm_names.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "library/session_communicators.h"
#include "runtime/job/epoch.h"
#include "runtime/job/runtime.h"
#include "runtime/job/whole_collectives.h"
#include "runtime/node/thread_placement.h"

namespace weft {
namespace {

std::atomic<int> next_number{0};

// This is the fixed size of Weft's data per communicator, which does not depend on the number of
// ranks (docs/inside/scale.md). Further memory is needed for the entry in the registry, a piece of
// mapped memory and, once the communicator is used, schedules and call classes. The limit for all
// fixed parts together is 1,832 bytes (runtime/adaptive/call_classes.cc).
static_assert(sizeof(Communicator) + sizeof(NodeMemory) + sizeof(NodeSharedMemory) <= 1680);

// Returns whether all ranks of the communicator belong to this job. Spawned or connected processes
// may run without Weft.
bool of_this_job_alone(MPI_Comm user) {
  MPI_Group group, job, others;
  int strangers = 1;
  library_calls.Comm_group(user, &group);
  library_calls.Comm_group(handles.comm_world, &job);
  library_calls.Group_difference(group, job, &others);
  library_calls.Group_size(others, &strangers);
  for (MPI_Group* made : {&group, &job, &others}) library_calls.Group_free(made);
  return strangers == 0;
}

// Starts a worker thread and returns it; returns an error if the system refuses the thread.
Result<std::unique_ptr<Worker>> start_worker(Observer& observer, int core) {
  static std::atomic<int> workers{0};
  auto worker = std::make_unique<Worker>(observer, workers.fetch_add(1), core);
  const auto started = worker->start();
  if (!started) return started.error();
  return worker;
}

// Prints why there is no worker thread, only once per process. effect: what Weft does without it.
// speaks: whether this rank prints.
void say_why_no_worker(const Error& why, const std::string& effect, bool speaks) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true) && speaks)
    say("no worker thread (" + why.message + "): " + effect + "; raise 'ulimit -u' to get one");
}

}  // namespace

Communicator::Communicator(MPI_Comm user, InternalCommunicator internal, int rank, int size)
    : user(user),
      internal(internal.comm),
      has_own(internal.is_own),
      tags(internal.tags),
      route{internal.comm, internal.ranks.get()},
      rank(rank),
      size(size),
      number(next_number.fetch_add(1)),
      internal_(std::move(internal)) {}

void Communicator::share_memory(const std::vector<int>& world_ranks) {
  nodes = nodes_of(world_ranks);
  if (!nodes) return;
  const int here = nodes->ranks_on(nodes->of(rank));
  const bool of_all = user == handles.comm_world && here > 1;
  const std::int64_t heaps = of_all ? bytes_for_heaps(here) : 0;
  const ErrorsReturn errors(user);
  const RoomWanted wanted{has_own ? internal : user, route, tags.of_single(next_in_sequence()),
                          heaps};
  auto found = shared_memory_on_node(wanted, rank, *nodes, world_ranks);
  if (!found) {
    nodes = nullptr;
    return;
  }
  if (*found) {
    node_shared_memory_ = found->get();
    room = SegmentAllocator(
        std::shared_ptr<SegmentAllocator::Space>(*found, &node_shared_memory_->rest()));
    memory = std::make_unique<NodeMemory>(
        std::shared_ptr<NodeBuffers>(*found, &node_shared_memory_->node_buffers()),
        on_one_node() ? ranks_that_share(world_ranks) : nullptr);
  }
  if (of_all) tell_of_heaps_in(room.take(heaps));
  if (on_one_node()) domains = domains_of(world_ranks);
  processor = processor_of(world_ranks);
}

namespace {

// The largest number of worker threads that engine auto starts for its trials. It wants one only
// for communicators whose internal communicator is unshared. These can be more than this number
// only if the user sets an algorithm that uses leaders (wants_leaders()); some then get no worker.
constexpr int kMostTried = kMostThatTry + 1;
std::atomic<int> tried_workers{0};

}  // namespace

// Notes that a schedule uses more of the shared memory than one page per rank besides the ranks'
// cache lines. When another communicator reuses the memory, pages beyond that are returned to the
// system.
void Communicator::note_use(const Schedule& schedule) {
  if (node_shared_memory_ &&
      schedule.node_bytes > node_shared_memory_->node_buffers().ranks() * kPageBytes)
    node_shared_memory_->spread();
}

void Communicator::want_worker(Observer& observer) {
  if (!worker && tried_workers.load() < kMostTried) {
    auto started = start_worker(observer, -1);
    if (started) {
      worker = std::move(*started);
      tried_workers.fetch_add(1);
    } else {
      say_why_no_worker(started.error(), "engine tcc is not tried", rank == 0);
    }
  }
  wants_worker_ = true;
}

Communicator::~Communicator() {
  if (node_shared_memory_ && !usable_.load()) node_shared_memory_->lose();
  if (internal == user) return;
  if (worker && wants_worker_) tried_workers.fetch_sub(1);
  // The worker must be destroyed first, because it may be inside a collective on the internal
  // communicator.
  worker.reset();
  give_up(std::move(internal_), freed.load() && !is_retained_.load(), usable_.load());
}

std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, const std::vector<int>& members, int rank,
                                      const Nodes& nodes) {
  if (nodes.count() == 1 || !nodes.all_alike()) return nullptr;
  auto made = split_own(comm, members, nodes.local_rank(rank), nodes.of(rank));
  if (!made) return nullptr;
  auto* const leaders = new Leaders(made->comm);
  return {leaders, [made = std::move(*made)](const Leaders* done_with) {
            give_up(made, false, true);
            delete done_with;
          }};
}

// Returns the only object of this process. It is never destroyed, since threads may use it while
// the process exits.
Communicators& Communicators::own() {
  static auto* const all = new Communicators;
  return *all;
}

bool Communicators::may_have_internal(MPI_Comm user) {
  if (is_of_session(user)) return false;
  int inter = 0, size = 0;
  library_calls.Comm_test_inter(user, &inter);
  if (inter) return false;
  library_calls.Comm_size(user, &size);
  return size > 1 && of_this_job_alone(user);
}

void Communicators::add(MPI_Comm user, const Hints& hints, const Wanted& wanted) {
  if (!may_have_internal(user)) return;
  int rank = 0, size = 0;
  library_calls.Comm_size(user, &size);
  library_calls.Comm_rank(user, &rank);
  const std::vector<int> world_ranks = world_ranks_of(user, size);
  const bool starts_worker = wanted.worker_for && may_have_own(wanted.most_own);
  Result<std::unique_ptr<Worker>> worker(nullptr);
  if (starts_worker) worker = start_worker(*wanted.worker_for, wanted.worker_core);
  WhyNone why_none;
  const Wish wish{wanted.most_own, static_cast<bool>(worker)};
  auto internal = make_internal(user, world_ranks, wish, &why_none);
  if (!internal) {
    if (why_none.not_ready >= 0)
      say_why_no_worker(worker ? Error{} : worker.error(),
                        "collectives of this communicator go to the MPI library",
                        why_none.not_ready == rank);
    if (!why_none.others_have_all) return;
    const std::lock_guard lock(mutex_);
    crowded_out_.insert(user);
    return begin_epoch();
  }
  auto communicator = std::make_shared<Communicator>(user, std::move(*internal), rank, size);
  communicator->hints = hints;
  communicator->neighbors = neighbors_of(user);
  if (communicator->has_own) communicator->worker = std::move(*worker);
  communicator->share_memory(world_ranks);
  if (wanted.leaders && communicator->has_own && communicator->nodes)
    communicator->leaders =
        make_leaders(communicator->internal, communicator->members(), rank, *communicator->nodes);
  const std::lock_guard lock(mutex_);
  known_[user] = std::move(communicator);
  begin_epoch();
}

bool Communicators::is_crowded_out(MPI_Comm user) {
  const std::lock_guard lock(mutex_);
  return crowded_out_.contains(user);
}

Communicator* Communicators::find(MPI_Comm user) {
  static thread_local Found last;
  const std::uint64_t now = epoch();
  if (last.epoch == now && last.user == user) return last.communicator;
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(user);
  last = {now, user, it == known_.end() ? nullptr : it->second.get()};
  return last.communicator;
}

std::shared_ptr<Communicator> Communicators::find_or_make(MPI_Comm comm) {
  if (Communicator* kept = find(comm)) return kept->shared_from_this();
  int rank = 0, size = 1;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_size(comm, &size);
  auto internal = make_internal(comm, world_ranks_of(comm, size), {.needed = true});
  return internal ? std::make_shared<Communicator>(comm, std::move(*internal), rank, size)
                  : nullptr;
}

std::shared_ptr<Communicator> Communicators::remove(MPI_Comm user) {
  const std::lock_guard lock(mutex_);
  crowded_out_.erase(user);
  const auto it = known_.find(user);
  if (it == known_.end()) return nullptr;
  auto removed = std::move(it->second);
  known_.erase(it);
  begin_epoch();
  return removed;
}

std::vector<std::shared_ptr<Communicator>> Communicators::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Communicator>> all;
  for (const auto& [user, communicator] : known_) all.push_back(communicator);
  return all;
}

bool Communicators::world_has_worker() {
  const Communicator* world = find(handles.comm_world);
  return world && (world->worker || world->wants_worker());
}

// Drops the data on all communicators. If a worker thread may still be inside a collective on an
// internal communicator, none is freed: the exchange in which the ranks agree on freeing could
// match that collective.
void Communicators::free_all() {
  const bool has_worker = world_has_worker();
  std::shared_ptr<Communicator> world = remove(handles.comm_world);
  if (!world) return;
  world.reset();
  {
    const std::lock_guard lock(mutex_);
    known_.clear();
    begin_epoch();
  }
  if (!has_worker) free_all_internal();
}

void Communicators::put_back(std::shared_ptr<Communicator> removed) {
  const std::lock_guard lock(mutex_);
  known_[removed->user] = std::move(removed);
  begin_epoch();
}

OwnCommunicator::OwnCommunicator(Communicator& of)
    : of_(of.shared_from_this()), made_(handles.comm_null) {
  if (of.has_own) return;
  const ErrorsReturn errors(of.user);
  if (errors.do_return()) made_ = communicator_like(of.user);
  if (made_ != handles.comm_null) library_calls.Comm_set_errhandler(made_, handles.errors_return);
}

OwnCommunicator::~OwnCommunicator() {
  if (made_ != handles.comm_null) library_calls.Comm_free(&made_);
}

bool OwnCommunicator::there() const {
  return get() != handles.comm_null;
}

namespace {

bool wants_leaders(const std::array<std::string, kKinds>& algorithms) {
  return std::ranges::find(algorithms, algorithm_names::kHierarchicalLibrary.text()) !=
         algorithms.end();
}

}  // namespace

void add_communicator(Runtime& runtime, MPI_Comm comm, const Hints& asked) {
  const Config& config = runtime.config;
  Hints hints = asked;
  if (hints.engine) hints.engine = possible_in_place_of(*hints.engine, runtime.library, comm);
  const Engine engine = hints.engine.value_or(config.engine);
  const bool worker = runtime.threads_allowed() && engine == Engine::tcc;
  Communicators::Wanted wanted;
  wanted.leaders = wants_leaders(config.algorithm) || wants_leaders(hints.algorithm);
  if (worker) wanted.worker_for = &runtime;
  if (worker && hints.placement) wanted.worker_core = core_for(*hints.placement, comm);
  const bool whole = worker || (runtime.threads_allowed() && engine == Engine::assist);
  if (wanted.leaders || whole)
    wanted.most_own = kMostOwn;
  else if (runtime.learns_by_messages() && engine == Engine::automatic)
    wanted.most_own = kMostThatTry;
  Communicators::own().add(comm, hints, wanted);
}

Engine engine_for(const Runtime& runtime, const Communicator& communicator) {
  const Engine asked = communicator.hints.engine.value_or(runtime.config.engine);
  const bool whole = asked == Engine::tcc || asked == Engine::assist;
  return whole && !communicator.has_own ? Engine::thread : asked;
}

}  // namespace weft
