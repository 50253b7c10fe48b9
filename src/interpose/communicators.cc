// Shadows: made in calls that are collective anyway, freed when nothing uses them.
#include "interpose/communicators.h"

#include "base/log.h"
#include "interpose/generated/library_calls.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

// Never destroyed: operations may end while the process exits.
struct Released {
  std::mutex mutex;
  std::vector<MPI_Comm> shadows;
};
Released& released() {
  static auto* instance = new Released;
  return *instance;
}

std::atomic<std::uint64_t> next_serial{1};

// Contexts are few (MPICH has about 2,000) and belong to the application first.
constexpr int kMostShadows = 256;
std::atomic<int> shadows_alive{0};

// Collective: whether all ranks have a shadow to spare. They may be members of different
// communicators, so one may have run out where another has not.
bool all_can_spare_one(MPI_Comm user) {
  const std::int64_t refusing = shadows_alive.load() < kMostShadows ? 0 : 1;
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
MPI_Comm make_shadow(MPI_Comm user) {
  MPI_Errhandler users;
  if (library_calls.Comm_get_errhandler(user, &users) != MPI_SUCCESS) return handles.comm_null;
  library_calls.Comm_set_errhandler(user, handles.errors_return);
  const MPI_Comm shadow = all_can_spare_one(user) ? create_shadow(user) : handles.comm_null;
  library_calls.Comm_set_errhandler(user, users);
  library_calls.Errhandler_free(&users);
  if (shadow == handles.comm_null) return shadow;
  library_calls.Comm_set_errhandler(shadow, handles.errors_return);
  shadows_alive.fetch_add(1);
  return shadow;
}

}  // namespace

Communicator::Communicator(MPI_Comm user, MPI_Comm shadow, int rank, int size)
    : user(user), shadow(shadow), rank(rank), size(size), serial(next_serial.fetch_add(1)) {}

Communicator::~Communicator() {
  if (shadow == user) return;
  const std::lock_guard lock(released().mutex);
  released().shadows.push_back(shadow);
}

Worker& Communicator::worker(Observer& observer) {
  static std::atomic<int> workers{0};
  const std::lock_guard lock(mutex_);
  if (!worker_) worker_ = std::make_unique<Worker>(observer, workers.fetch_add(1), worker_core);
  return *worker_;
}

void Communicators::add(MPI_Comm user, const Hints& hints) {
  int inter = 0, rank = 0, size = 0;
  library_calls.Comm_test_inter(user, &inter);
  if (inter) return;
  library_calls.Comm_size(user, &size);
  if (size == 1) return;
  library_calls.Comm_rank(user, &rank);
  const MPI_Comm shadow = make_shadow(user);
  if (shadow == handles.comm_null) return;
  auto communicator = std::make_shared<Communicator>(user, shadow, rank, size);
  communicator->hints = hints;
  communicator->neighbors = neighbors_of(user);
  const std::lock_guard lock(mutex_);
  known_[user] = std::move(communicator);
  generation_.fetch_add(1);
}

Communicator* Communicators::find(MPI_Comm user) {
  static thread_local Found last;
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (last.generation == generation && last.user == user) return last.communicator;
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(user);
  last = {generation, user, it == known_.end() ? nullptr : it->second.get()};
  return last.communicator;
}

std::shared_ptr<Communicator> Communicators::find_or_make(MPI_Comm comm) {
  if (Communicator* kept = find(comm)) return kept->shared_from_this();
  const MPI_Comm shadow = make_shadow(comm);
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
  generation_.fetch_add(1);
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
