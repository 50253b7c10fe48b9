// Shadows: made in calls that are collective anyway, and freed there when all ranks are done with
// them; one of which nothing can be under way is freed in the application's own call.
#include "runtime/communicators.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/log.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/epoch.h"
#include "runtime/sites.h"

namespace weft {
namespace {

// Contexts are few (MPICH has about 2,000) and belong to the application first. With the
// communicator of this rank alone, Weft takes 256.
constexpr int kMostShadows = 255;
std::atomic<int> shadows_alive{0};

void free_now(MPI_Comm comm) {
  library_calls.Comm_free(&comm);
  shadows_alive.fetch_sub(1);
}

// What this rank is done with of some members' communicators, by their numbers.
struct Spares {
  std::map<std::int64_t, MPI_Comm> by_number;
  std::int64_t next = 0;  // which to propose first; the same on all the members where it matters
};

// Never destroyed: operations may end while the process exits.
struct AllSpares {
  std::mutex mutex;  // guards the rest
  std::map<std::vector<int>, Spares> of;
};
AllSpares& spares() {
  static auto* instance = new AllSpares;
  return *instance;
}

void put_by(Shadow shadow) {
  const std::lock_guard lock(spares().mutex);
  spares().of[std::move(shadow.members)].by_number.emplace(shadow.number, shadow.comm);
}

// One that this rank proposes to free, and nobody else meanwhile. Number 0: there is none.
Shadow take_spare(const std::vector<int>& members) {
  const std::lock_guard lock(spares().mutex);
  const auto found = spares().of.find(members);
  if (found == spares().of.end()) return {};
  auto& [by_number, next] = found->second;
  const auto one = by_number.lower_bound(next);
  if (one == by_number.end()) return {};
  Shadow taken{one->second, one->first, members};
  by_number.erase(one);
  return taken;
}

// The numbers that the members have proposed lie between these two. Where they differ, they try
// the greatest next time, or all from the beginning if some have none.
void settle_spare(Shadow spare, std::int64_t least, std::int64_t greatest) {
  const bool agreed = least == greatest;
  if (agreed && spare.number != 0) free_now(spare.comm);
  const std::lock_guard lock(spares().mutex);
  const auto found = spares().of.find(spare.members);
  if (found == spares().of.end()) return;
  auto& [by_number, next] = found->second;
  next = agreed || least == 0 ? 0 : greatest;
  if (!agreed && spare.number != 0) by_number.emplace(spare.number, spare.comm);
  if (by_number.empty()) spares().of.erase(found);
}

int spares_here() {
  const std::lock_guard lock(spares().mutex);
  std::size_t count = 0;
  for (const auto& [members, theirs] : spares().of) count += theirs.by_number.size();
  return static_cast<int>(count);
}

// In the same order on all ranks, whichever of the communicators they are members of.
void free_spares() {
  const std::lock_guard lock(spares().mutex);
  for (const auto& [members, theirs] : spares().of)
    for (const auto& [number, comm] : theirs.by_number) free_now(comm);
  spares().of.clear();
}

std::atomic<int> next_number{0};

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

std::int64_t new_number(int world_rank) {
  static std::atomic<std::int64_t> made{0};
  return (made.fetch_add(1) + 1) << 32 | world_rank;
}

// Collective: the number of a new communicator for these members; none where some rank is not
// ready, or has none to spare, since ranks may be members of different communicators. One that all
// are done with is freed here.
std::optional<std::int64_t> number_for_another(MPI_Comm comm, const std::vector<int>& members,
                                               bool ready) {
  int rank = 0, world_rank = 0;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_rank(handles.comm_world, &world_rank);
  Shadow spare = take_spare(members);
  spare.members = members;
  const std::array<std::int64_t, 4> own{ready && shadows_alive.load() < kMostShadows ? 0 : 1,
                                        rank == 0 ? new_number(world_rank) : 0, spare.number,
                                        ~spare.number};
  auto greatest = own;
  const int code = library_calls.Allreduce(
      own.data(), greatest.data(), static_cast<int>(own.size()), handles.int64, handles.max, comm);
  if (code != MPI_SUCCESS) {
    if (spare.number != 0) put_by(std::move(spare));
    return std::nullopt;
  }
  settle_spare(std::move(spare), ~greatest[3], greatest[2]);
  return greatest[0] == 0 ? std::optional(greatest[1]) : std::nullopt;
}

// Errors meanwhile return to us: the application has its communicator, and goes on without Weft.
std::optional<Shadow> make_shadow(MPI_Comm user, int size, bool ready) {
  MPI_Errhandler users;
  if (library_calls.Comm_get_errhandler(user, &users) != MPI_SUCCESS) return std::nullopt;
  Shadow shadow{handles.comm_null, 0, world_ranks(user, size)};
  std::sort(shadow.members.begin(), shadow.members.end());
  library_calls.Comm_set_errhandler(user, handles.errors_return);
  if (const auto number = number_for_another(user, shadow.members, ready)) {
    shadow.number = *number;
    shadow.comm = communicator_like(user);
  }
  library_calls.Comm_set_errhandler(user, users);
  library_calls.Errhandler_free(&users);
  if (shadow.comm == handles.comm_null) return std::nullopt;
  library_calls.Comm_set_errhandler(shadow.comm, handles.errors_return);
  shadows_alive.fetch_add(1);
  return shadow;
}

// Null where the system refuses a thread, which is said once.
std::unique_ptr<Worker> start_worker(Observer& observer, int core, const std::string& effect) {
  static std::atomic<int> workers{0};
  static std::atomic<bool> said{false};
  auto worker = std::make_unique<Worker>(observer, workers.fetch_add(1), core);
  const auto started = worker->start();
  if (started) return worker;
  if (!said.exchange(true))
    say("no worker thread (" + started.error().message + "): " + effect +
        "; raise 'ulimit -u' to get one");
  return nullptr;
}

}  // namespace

MPI_Comm communicator_like(MPI_Comm comm) {
  MPI_Group group;
  MPI_Comm made = handles.comm_null;
  if (library_calls.Comm_group(comm, &group) != MPI_SUCCESS) return handles.comm_null;
  const int code = library_calls.Comm_create(comm, group, &made);
  library_calls.Group_free(&group);
  return code == MPI_SUCCESS ? made : handles.comm_null;
}

Communicator::Communicator(MPI_Comm user, Shadow shadow, int rank, int size)
    : user(user),
      shadow(shadow.comm),
      shadow_number(shadow.number),
      members(std::move(shadow.members)),
      rank(rank),
      size(size),
      number(next_number.fetch_add(1)),
      sites(std::make_unique<Sites>()) {}

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

namespace {

// Each is a thread, and a program may have many communicators.
constexpr int kMostTried = 16;
std::atomic<int> tried_workers{0};

}  // namespace

void Communicator::want_worker(Observer& observer) {
  if (!worker && tried_workers.load() < kMostTried) {
    worker = start_worker(observer, -1, "engine tcc is not tried");
    if (worker) tried_workers.fetch_add(1);
  }
  wants_worker_ = true;
}

Communicator::~Communicator() {
  if (shadow == user) return;
  if (worker && wants_worker_) tried_workers.fetch_sub(1);
  worker.reset();  // it may be inside a collective on the shadow
  if (freed.load() && !is_lent_.load())
    free_now(shadow);
  else
    put_by({shadow, shadow_number, members});
}

std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, const std::vector<int>& members, int rank,
                                      const Nodes& nodes) {
  if (nodes.count() == 1 || !nodes.all_alike()) return nullptr;
  const auto number = number_for_another(comm, members, true);
  MPI_Comm made = handles.comm_null;
  if (!number ||
      library_calls.Comm_split(comm, nodes.place(rank), nodes.of(rank), &made) != MPI_SUCCESS)
    return nullptr;
  library_calls.Comm_set_errhandler(made, handles.errors_return);
  shadows_alive.fetch_add(1);
  return {new Leaders(made), [number = *number, members](const Leaders* leaders) {
            put_by({leaders->comm, number, members});
            delete leaders;
          }};
}

bool Communicators::may_have_shadow(MPI_Comm user) {
  int inter = 0, size = 0;
  library_calls.Comm_test_inter(user, &inter);
  if (inter) return false;
  library_calls.Comm_size(user, &size);
  return size > 1 && of_this_job_alone(user);
}

void Communicators::add(MPI_Comm user, const Hints& hints, bool with_leaders, Observer* worker_for,
                        int worker_core) {
  if (!may_have_shadow(user)) return;
  int rank = 0, size = 0;
  library_calls.Comm_size(user, &size);
  library_calls.Comm_rank(user, &rank);
  auto worker = worker_for ? start_worker(*worker_for, worker_core,
                                          "collectives of this communicator go to the MPI library")
                           : nullptr;
  auto shadow = make_shadow(user, size, !worker_for || worker);
  if (!shadow) return;
  auto communicator = std::make_shared<Communicator>(user, std::move(*shadow), rank, size);
  communicator->hints = hints;
  communicator->neighbors = neighbors_of(user);
  communicator->worker = std::move(worker);
  communicator->share_memory();
  if (with_leaders && communicator->nodes)
    communicator->leaders =
        make_leaders(communicator->shadow, communicator->members, rank, *communicator->nodes);
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
  int rank = 0, size = 1;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_size(comm, &size);
  auto shadow = make_shadow(comm, size, true);
  return shadow ? std::make_shared<Communicator>(comm, std::move(*shadow), rank, size) : nullptr;
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

std::vector<std::shared_ptr<Communicator>> Communicators::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Communicator>> all;
  for (const auto& [user, communicator] : known_) all.push_back(communicator);
  return all;
}

// What a request that was never freed still holds is no spare. Then nobody frees any: another rank
// might wait in MPI_Comm_free for the one that this rank does not free. Nor where a worker may
// still be inside a collective on a shadow, which would meet the one by which the ranks agree here.
void Communicators::free_all() {
  std::shared_ptr<Communicator> world = remove(handles.comm_world);
  if (!world) return;
  const MPI_Comm shadow = world->shadow;
  const bool has_worker = world->worker != nullptr || world->wants_worker();  // on all ranks alike
  world->sites->forget_comparisons();
  world.reset();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [user, communicator] : known_) communicator->sites->forget_comparisons();
    known_.clear();
    begin_epoch();
  }
  if (has_worker) return;
  const std::int64_t held = shadows_alive.load() - spares_here();
  std::int64_t most_held = 0;
  const int code =
      library_calls.Allreduce(&held, &most_held, 1, handles.int64, handles.max, shadow);
  if (code == MPI_SUCCESS && most_held == 0) free_spares();
}

void Communicators::put_back(std::shared_ptr<Communicator> removed) {
  const std::lock_guard lock(mutex_);
  known_[removed->user] = std::move(removed);
  begin_epoch();
}

}  // namespace weft
