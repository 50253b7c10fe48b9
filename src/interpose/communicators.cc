// Shadows: made in calls that are collective anyway, freed when nothing uses them.
#include "interpose/communicators.h"

#include "base/log.h"
#include "interpose/epoch.h"
#include "interpose/generated/library_calls.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

// What is to be freed. Never destroyed: operations may end while the process exits.
struct Released {
  std::mutex mutex;
  std::vector<MPI_Comm> shadows;
};
Released& released() {
  static auto* instance = new Released;
  return *instance;
}

void release(MPI_Comm comm) {
  const std::lock_guard lock(released().mutex);
  released().shadows.push_back(comm);
}

std::atomic<int> next_number{0};

// Contexts are few (MPICH has about 2,000) and belong to the application first. With the
// communicator of this rank alone, Weft takes 256.
constexpr int kMostShadows = 255;
std::atomic<int> shadows_alive{0};

// Processes of another job, spawned or connected, may run without Weft.
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

// Collective: whether all ranks are ready and have a shadow to spare. They may be members of
// different communicators, so one may have run out where another has not.
bool all_can_spare_one(MPI_Comm user, bool ready) {
  const std::int64_t refusing = ready && shadows_alive.load() < kMostShadows ? 0 : 1;
  std::int64_t refusals = 0;
  return library_calls.Allreduce(&refusing, &refusals, 1, handles.int64, handles.sum, user) ==
             MPI_SUCCESS &&
         refusals == 0;
}

// By MPI_Comm_create over the same group: unlike MPI_Comm_dup it calls none of the application's
// attribute callbacks and takes over no info.
MPI_Comm create_shadow(MPI_Comm user) {
  MPI_Group group;
  MPI_Comm shadow = handles.comm_null;
  if (library_calls.Comm_group(user, &group) != MPI_SUCCESS) return handles.comm_null;
  const int code = library_calls.Comm_create(user, group, &shadow);
  library_calls.Group_free(&group);
  return code == MPI_SUCCESS ? shadow : handles.comm_null;
}

// Errors meanwhile return to us: the application has its communicator, and goes on without Weft.
MPI_Comm make_shadow(MPI_Comm user, bool ready) {
  MPI_Errhandler users;
  if (library_calls.Comm_get_errhandler(user, &users) != MPI_SUCCESS) return handles.comm_null;
  library_calls.Comm_set_errhandler(user, handles.errors_return);
  const MPI_Comm shadow = all_can_spare_one(user, ready) ? create_shadow(user) : handles.comm_null;
  library_calls.Comm_set_errhandler(user, users);
  library_calls.Errhandler_free(&users);
  if (shadow == handles.comm_null) return shadow;
  library_calls.Comm_set_errhandler(shadow, handles.errors_return);
  shadows_alive.fetch_add(1);
  return shadow;
}

// Null where the system refuses a thread, which is said once.
std::unique_ptr<Worker> start_worker(Observer& observer, int core) {
  static std::atomic<int> workers{0};
  static std::atomic<bool> said{false};
  auto worker = std::make_unique<Worker>(observer, workers.fetch_add(1), core);
  const auto started = worker->start();
  if (started) return worker;
  if (!said.exchange(true))
    say("no worker thread (" + started.error().message +
        "): collectives of this communicator go to the MPI library; raise 'ulimit -u' to get one");
  return nullptr;
}

}  // namespace

Communicator::Communicator(MPI_Comm user, MPI_Comm shadow, int rank, int size)
    : user(user), shadow(shadow), rank(rank), size(size), number(next_number.fetch_add(1)) {}

void Communicator::share_memory() {
  nodes = nodes_of(shadow, size);
  if (!nodes) return;
  const int ranks = nodes->ranks_on(nodes->of(rank));
  const std::int64_t window_bytes = most_node_bytes(ranks);
  const std::int64_t bytes = NodeWindows::bytes(ranks, window_bytes);
  auto made = make_room(shadow, rank, *nodes, bytes);
  if (!made) {
    nodes = nullptr;
    return;
  }
  room = std::move(*made);
  if (ranks > 1)
    memory = std::make_unique<NodeMemory>(
        room, nodes->place(rank), ranks, window_bytes,
        on_one_node() ? ranks_that_share(shadow, size) : std::vector<int>());
  if (on_one_node()) domains = domains_of(shadow, size);
  processor = processor_of(shadow, size);
}

Communicator::~Communicator() {
  if (shadow != user) release(shadow);
}

std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, int rank, const Nodes& nodes) {
  if (nodes.count() == 1 || !nodes.all_alike() || !all_can_spare_one(comm, true)) return nullptr;
  MPI_Comm made = handles.comm_null;
  if (library_calls.Comm_split(comm, nodes.place(rank), nodes.of(rank), &made) != MPI_SUCCESS)
    return nullptr;
  library_calls.Comm_set_errhandler(made, handles.errors_return);
  shadows_alive.fetch_add(1);
  return {new Leaders(made), [](const Leaders* leaders) {
            release(leaders->comm);
            delete leaders;
          }};
}

void Communicators::add(MPI_Comm user, const Hints& hints, bool with_leaders, Observer* worker_for,
                        int worker_core) {
  int inter = 0, rank = 0, size = 0;
  library_calls.Comm_test_inter(user, &inter);
  if (inter) return;
  library_calls.Comm_size(user, &size);
  if (size == 1 || !of_this_job_alone(user)) return;
  library_calls.Comm_rank(user, &rank);
  auto worker = worker_for ? start_worker(*worker_for, worker_core) : nullptr;
  const MPI_Comm shadow = make_shadow(user, !worker_for || worker);
  if (shadow == handles.comm_null) return;
  auto communicator = std::make_shared<Communicator>(user, shadow, rank, size);
  communicator->hints = hints;
  communicator->neighbors = neighbors_of(user);
  communicator->worker = std::move(worker);
  communicator->share_memory();
  if (with_leaders && communicator->nodes)
    communicator->leaders = make_leaders(shadow, rank, *communicator->nodes);
  const std::lock_guard lock(mutex_);
  known_[user] = std::move(communicator);
  begin_epoch();
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
  const MPI_Comm shadow = make_shadow(comm, true);
  if (shadow == handles.comm_null) return nullptr;
  int rank = 0, size = 1;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_size(comm, &size);
  return std::make_shared<Communicator>(comm, shadow, rank, size);
}

std::shared_ptr<Communicator> Communicators::remove(MPI_Comm user) {
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(user);
  if (it == known_.end()) return nullptr;
  auto removed = std::move(it->second);
  known_.erase(it);
  begin_epoch();
  return removed;
}

void Communicators::release_shadows() {
  std::vector<MPI_Comm> shadows;
  {
    const std::lock_guard lock(released().mutex);
    shadows.swap(released().shadows);
  }
  for (MPI_Comm& shadow : shadows) library_calls.Comm_free(&shadow);
  shadows_alive.fetch_sub(static_cast<int>(shadows.size()));
}

}  // namespace weft::interpose
