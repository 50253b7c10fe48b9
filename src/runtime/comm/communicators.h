// Communicators: what Weft keeps of each of the application's communicators.
// Each has a shadow (runtime/comm/shadows.h), since Weft's messages must not meet the
// application's. It is made inside calls that are collective anyway, never inside MPI_I*.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/config.h"
#include "engine/worker.h"
#include "runtime/comm/hints.h"
#include "runtime/comm/neighbors.h"
#include "runtime/comm/shadows.h"
#include "runtime/node/node_memory.h"
#include "schedule/schedule_cache.h"
#include "transport/mpi/leaders.h"
#include "transport/mpi/mpi_transport.h"

namespace weft {

class Sites;

// Collective over `comm`, a communicator of Weft's own with these members. nullptr on all ranks
// where not all nodes have as many, or where there is no communicator to spare.
std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, const std::vector<int>& members, int rank,
                                      const Nodes& nodes);

// Whose a call is, Weft's or the library's, as measured: of a collective of up to so many bytes
// and, if it reduces, of one operator and type. By facts that all ranks know alike.
struct Verdict {
  Kind kind;
  std::uint64_t most_bytes;
  bool blocking;   // else persistent
  bool by_kernel;  // Weft's way is one copy by the kernel
  MPI_Op op;
  MPI_Datatype type;
  bool won = false;  // Weft's

  bool is_about(const Verdict& other) const {
    return kind == other.kind && most_bytes == other.most_bytes && blocking == other.blocking &&
           by_kernel == other.by_kernel && op == other.op && type == other.type;
  }
};

// Shared by the registry and every operation under way, so that MPI_Comm_free with a collective
// pending is deferred until that has completed.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // The shadow is `user`: there is none, for the library's own non-blocking calls only.
  Communicator(MPI_Comm user, Shadow shadow, int rank, int size);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const MPI_Comm user;
  const MPI_Comm shadow;
  const bool has_own;  // which whole collectives of the library's need
  // The application has freed `user`. Where nothing was lent, nothing is under way on any rank, and
  // the shadow goes in that call, as on the other ranks.
  std::atomic<bool> freed{false};
  Processor processor = Processor::other;  // of all its ranks, where some share memory
  const Tags tags;                         // on the shadow
  const Route route;                       // for messages there
  const int rank;
  const int size;
  const int number;  // of those that Weft knows on this rank; 0: MPI_COMM_WORLD
  std::atomic<std::uint32_t> initialised{0};  // persistent collectives, each of which has its tag
  // Without one: an earlier request that has the same may still live. The same on all ranks.
  bool has_tag_left() const { return initialised.load() < tags.each; }
  // Of an own shadow: its ranks in MPI_COMM_WORLD, in order.
  const std::vector<int>& members() const { return shadow_.members; }
  // Collective, once: finds out which ranks share memory, and makes it. By their numbers in
  // MPI_COMM_WORLD.
  void share_memory(const std::vector<int>& world_ranks);

  // Where engine auto may take a worker: wants one, unless there is one. The same on all ranks;
  // that the system refuses one is not. By whoever begins the communicator's calls.
  void want_worker(Observer& observer);
  bool wants_worker() const { return wants_worker_; }

  // A request has been made for a collective on it, which may outlive it. The same on all ranks.
  void lend() { is_lent_.store(true, std::memory_order_relaxed); }

  Hints hints;
  std::optional<Neighbors> neighbors;  // none: neighborhood collectives pass on
  // An operation has failed: what was sent to this rank may come later.
  void has_failed() { usable_.store(false, std::memory_order_relaxed); }

  // Gives each collective its tag. Taken for each on all ranks, also where one has nothing to send.
  // No two threads start collectives on one communicator at a time.
  std::uint32_t next_in_sequence() {
    const std::uint32_t number = sequence_.load(std::memory_order_relaxed);
    sequence_.store(number + 1, std::memory_order_relaxed);
    return number;
  }

  // A schedule for this shape, from the cache or by `build`.
  template <class Build>
  std::shared_ptr<const Schedule> schedule(const Shape& shape, const void* algorithm, Build build) {
    const std::lock_guard lock(mutex_);
    return schedules_.find_or(shape, algorithm, [&] {
      Schedule made = build();
      note_use(made);
      return made;
    });
  }

  std::unique_ptr<Worker> worker;          // of engine tcc, and where auto has wanted one
  std::shared_ptr<const Nodes> nodes;      // nullptr where no ranks share memory
  std::shared_ptr<const Domains> domains;  // of one node; nullptr where it has one only
  std::unique_ptr<NodeMemory> memory;      // of this rank's node; nullptr where it shares none
  SegmentRoom room;                        // for persistent requests; none where it shares none
  std::shared_ptr<Leaders> leaders;        // where an algorithm asks for them; else nullptr
  std::vector<Verdict> verdicts;           // by blocking calls and initialisations only
  const std::unique_ptr<Sites> sites;      // where engine auto learns
  bool on_one_node() const { return nodes && nodes->count() == 1; }
  // It is about to be carried out in the communicator's memory.
  void note_use(const Schedule& schedule);

 private:
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<bool> is_lent_{false}, usable_{true};
  bool wants_worker_ = false;
  Shadow shadow_;
  NodeRoom* node_room_ = nullptr;  // what `memory` is in, and has a share of
  std::mutex mutex_;               // guards schedules_
  ScheduleCache schedules_;
};

// Where Weft has the library make whole collectives: the shadow, or, where others share that, one
// of its ranks that is made for them. Beginning and end are collective.
class OwnCommunicator {
 public:
  explicit OwnCommunicator(Communicator& of);
  ~OwnCommunicator();
  OwnCommunicator(const OwnCommunicator&) = delete;
  OwnCommunicator& operator=(const OwnCommunicator&) = delete;

  bool there() const;  // or the library has none to give
  MPI_Comm get() const { return of_->has_own ? of_->shadow : made_; }

 private:
  const std::shared_ptr<const Communicator> of_;
  MPI_Comm made_;
};

// Beside MPI_COMM_WORLD so many communicators, the first ones, may try the library's whole
// collectives where engine auto learns.
inline constexpr int kMostThatTry = 15;

class Communicators {
 public:
  // Neither two groups, nor one rank, nor processes of other jobs, nor of a session. The same on
  // all its ranks.
  static bool may_have_shadow(MPI_Comm user);

  // What is wanted beside a shadow: one of its own where there are fewer than most_own; leaders and
  // a worker, which need that. worker_for: null where none is wanted; worker_core: -1 where the
  // observer places it.
  struct Wanted {
    int most_own = 0;
    bool leaders = false;
    Observer* worker_for = nullptr;
    int worker_core = -1;
  };
  // Collective over `user`. Makes the shadow; nothing is kept where that is not possible (it may
  // have none, there are too many communicators, a worker is wanted that some rank cannot start):
  // its calls pass on untouched.
  void add(MPI_Comm user, const Hints& hints, const Wanted& wanted);
  // There was no shadow to spare for it.
  bool is_crowded_out(MPI_Comm user);
  // nullptr: passes on. Valid until remove(), which no thread may race with its own call.
  Communicator* find(MPI_Comm user);
  std::shared_ptr<Communicator> remove(MPI_Comm user);
  // It has been removed, but not freed.
  void put_back(std::shared_ptr<Communicator> removed);

  std::vector<std::shared_ptr<Communicator>> all();

  // Of engine tcc, or wanted by auto: it may still be inside a collective on the communicator of
  // all ranks, so that these begin none there. The same on all ranks.
  bool world_has_worker();
  // Collective over all ranks, in MPI_Finalize: forgets all, and frees the shadows if all ranks are
  // done with them.
  void free_all();

  // Collective over `comm`: the one that is kept, else one that is not kept; nullptr where none can
  // be made.
  std::shared_ptr<Communicator> find_or_make(MPI_Comm comm);

 private:
  // The last communicator that this thread found.
  struct Found {
    std::uint64_t epoch = 0;
    MPI_Comm user{};
    Communicator* communicator = nullptr;
  };

  std::mutex mutex_;  // guards the rest
  std::unordered_map<MPI_Comm, std::shared_ptr<Communicator>> known_;
  std::unordered_set<MPI_Comm> crowded_out_;
};

}  // namespace weft
