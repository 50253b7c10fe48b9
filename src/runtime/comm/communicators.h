// Holds Weft's data on the application's communicators. Each of these has an internal communicator
// (runtime/comm/internal_communicators.h), so that Weft's messages never match the application's.
// An internal communicator is made only in calls that are collective and may block anyway, never in
// non-blocking ones (MPI_I*).
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
#include "runtime/comm/attributes.h"
#include "runtime/comm/hints.h"
#include "runtime/comm/internal_communicators.h"
#include "runtime/comm/neighbors.h"
#include "runtime/node/node_memory.h"
#include "schedule/schedule_cache.h"
#include "transport/mpi/leaders.h"
#include "transport/mpi/mpi_transport.h"

namespace weft {

class Runtime;

// Makes communicators between the nodes: one for each node rank, whose members (leaders) have this
// number among the ranks of their node. It is collective over `comm`, an internal communicator with
// these members. Returns nullptr on all ranks if the nodes have different numbers of ranks, or if
// the MPI library has no communicator left.
std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, const std::vector<int>& members, int rank,
                                      const Nodes& nodes);

// Weft's data on a communicator of the application. The registry of communicators and all active
// collectives share this object, because MPI_Comm_free takes effect only when the pending
// collectives are complete.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // user: the application's communicator. internal: Weft's own communicator for it. If both are
  // equal, Weft has no internal communicator, and this object serves only the MPI library's own
  // non-blocking calls.
  Communicator(MPI_Comm user, InternalCommunicator internal, int rank, int size);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const MPI_Comm user;
  const MPI_Comm internal;
  // True if no other communicator of the application uses the same internal communicator.
  // Collectives of the MPI library itself may be called only on such a communicator.
  const bool has_own;
  // True once the application has freed `user`. If no request was ever made on it, no rank can then
  // have an active collective on it, and all ranks free the internal communicator in MPI_Comm_free.
  std::atomic<bool> freed{false};
  // The processor type, if all ranks have the same one and some share memory.
  Processor processor = Processor::other;
  const Tags tags;    // the tags to use on the internal communicator
  const Route route;  // the communicator and ranks for Weft's messages
  const int rank;
  const int size;
  // A number that this rank gives to each communicator; 0 for MPI_COMM_WORLD.
  const int number;
  // The number of persistent collectives so far. Each has a tag of its own.
  std::atomic<std::uint32_t> initialised{0};
  // Returns whether there is an unused tag for another persistent collective. The result is equal
  // on all ranks.
  bool has_tag_left() const { return initialised.load() < tags.each; }
  // Returns the ranks in MPI_COMM_WORLD of an internal communicator that is not shared, sorted.
  const std::vector<int>& members() const { return internal_.members; }
  // Finds out which ranks share a node, and sets up their shared memory. It is collective over the
  // communicator, and must be called only once. world_ranks: the communicator's ranks in
  // MPI_COMM_WORLD.
  void share_memory(const std::vector<int>& world_ranks);

  // Starts a worker thread, on which engine auto tries the MPI library's blocking collectives,
  // unless there is one already or the limit is reached. Only the thread that starts the
  // communicator's collectives may call it. wants_worker() is equal on all ranks; but the system
  // may refuse the thread on some of them.
  void want_worker(Observer& observer);
  bool wants_worker() const { return wants_worker_; }

  // Notes that a request for a collective on this communicator exists or has existed. Such a
  // collective may still be active when the communicator is freed. All ranks must call this.
  void retain_for_request() { is_retained_.store(true, std::memory_order_relaxed); }

  Hints hints;
  // The neighbours in the communicator's topology; nullopt if neighbourhood collectives go to the
  // MPI library.
  std::optional<Neighbors> neighbors;
  // Notes that a collective on this communicator has failed. Its messages may still arrive later,
  // so the communicator's tags must not be reused.
  void has_failed() { usable_.store(false, std::memory_order_relaxed); }

  // Returns the number of the next collective, which determines its tag. Every rank must take a
  // number for each collective, even if it sends nothing. Two threads must not start collectives on
  // one communicator at the same time.
  std::uint32_t next_in_sequence() {
    const std::uint32_t number = sequence_.load(std::memory_order_relaxed);
    sequence_.store(number + 1, std::memory_order_relaxed);
    return number;
  }

  // Returns a schedule for this shape and algorithm, from the cache if possible. build(): makes the
  // schedule.
  template <class Build>
  std::shared_ptr<const Schedule> schedule(const Shape& shape, const void* algorithm, Build build) {
    const std::lock_guard lock(mutex_);
    return schedules_.find_or(shape, algorithm, [&] {
      Schedule made = build();
      note_use(made);
      return made;
    });
  }

  // thread for the MPI library's blocking collectives; set for engine tcc, and after want_worker()
  std::unique_ptr<Worker> worker;
  // The node of each rank; nullptr if no two ranks share a node.
  std::shared_ptr<const Nodes> nodes;
  // The NUMA domain of each rank, if all ranks are on a single node; nullptr if all are in one
  // domain.
  std::shared_ptr<const Domains> domains;
  // The memory that this rank shares with others on its node; nullptr if there is none.
  std::unique_ptr<NodeMemory> memory;
  // Space in shared memory for persistent requests; empty if this rank shares no memory.
  SegmentAllocator room;
  // communicators between nodes; nullptr unless an algorithm uses them
  std::shared_ptr<Leaders> leaders;
  Attributes attributes;
  bool on_one_node() const { return nodes && nodes->count() == 1; }
  // Notes how much of the shared memory a schedule uses. It must be called before the schedule is
  // carried out for the first time.
  void note_use(const Schedule& schedule);

 private:
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<bool> is_retained_{false}, usable_{true};
  bool wants_worker_ = false;
  InternalCommunicator internal_;
  // The owner of `memory`, which later communicators of the same ranks reuse.
  NodeSharedMemory* node_shared_memory_ = nullptr;
  std::mutex mutex_;  // guards schedules_
  ScheduleCache schedules_;
};

// A communicator on which Weft may call collectives of the MPI library. This is the internal
// communicator (the one that carries Weft's messages) or, if other communicators of the application
// use it, too, a new communicator. The constructor and the destructor are collective.
class OwnCommunicator {
 public:
  explicit OwnCommunicator(Communicator& of);
  ~OwnCommunicator();
  OwnCommunicator(const OwnCommunicator&) = delete;
  OwnCommunicator& operator=(const OwnCommunicator&) = delete;

  bool there() const;  // returns false if the MPI library could not make a communicator
  MPI_Comm get() const { return of_->has_own ? of_->internal : made_; }

 private:
  const std::shared_ptr<const Communicator> of_;
  MPI_Comm made_;
};

// The number of communicators, besides MPI_COMM_WORLD, on which engine auto may try the MPI
// library's blocking collectives on worker threads. These are the first ones that the application
// makes.
inline constexpr int kMostThatTry = 15;

class Communicators {
 public:
  // Returns the only object of this process.
  static Communicators& own();

  // Returns whether Weft may make an internal communicator for `user`. It may not for
  // intercommunicators, for a single rank, for communicators with processes of other jobs, and for
  // those of MPI sessions. The result is equal on all ranks of `user`.
  static bool may_have_internal(MPI_Comm user);

  // Describes the needs of a new communicator. most_own: it gets an unshared internal communicator
  // if fewer than this number exist. leaders: whether it needs leaders, which require an unshared
  // one. worker_for: the observer of its worker thread, which also requires an unshared one;
  // nullptr if it needs no worker. worker_core: the core of the worker; -1 if the observer chooses
  // it.
  struct Wanted {
    int most_own = 0;
    bool leaders = false;
    Observer* worker_for = nullptr;
    int worker_core = -1;
  };
  // Makes the internal communicator for `user`; collective over `user`. All collectives on `user`
  // go to the MPI library if that is impossible: if may_have_internal() is false, if no
  // communicator is left, or if some rank cannot start a required worker.
  void add(MPI_Comm user, const Hints& hints, const Wanted& wanted);
  // Returns whether `user` has no internal communicator because all were in use.
  bool is_crowded_out(MPI_Comm user);
  // Returns Weft's data on the communicator; nullptr if its collectives go to the MPI library. The
  // result is valid until remove(). No thread may call remove() while another one is in a
  // collective on this communicator.
  Communicator* find(MPI_Comm user);
  std::shared_ptr<Communicator> remove(MPI_Comm user);
  // Registers a communicator again after remove(), because it was not freed.
  void put_back(std::shared_ptr<Communicator> removed);

  std::vector<std::shared_ptr<Communicator>> all();

  // Returns whether MPI_COMM_WORLD has a worker thread (for engine tcc, or for engine auto). It may
  // still be inside a collective on this communicator, so that no other collective may begin there.
  // The result is equal on all ranks.
  bool world_has_worker();
  // Drops the data on all communicators, and frees their internal communicators if all ranks have
  // finished with them. It is collective over all ranks, in MPI_Finalize.
  void free_all();

  // Returns Weft's data on `comm`. If there are none, makes an object that is not registered;
  // returns nullptr if that is impossible. It is collective over `comm`.
  std::shared_ptr<Communicator> find_or_make(MPI_Comm comm);

 private:
  // The communicator that this thread has looked up last.
  struct Found {
    std::uint64_t epoch = 0;
    MPI_Comm user{};
    Communicator* communicator = nullptr;
  };

  std::mutex mutex_;  // guards known_ and crowded_out_
  std::unordered_map<MPI_Comm, std::shared_ptr<Communicator>> known_;
  std::unordered_set<MPI_Comm> crowded_out_;
};

// Registers a new communicator of the application, and makes its internal communicator. It is
// collective over `comm`. hints: the user's settings from info keys.
void add_communicator(Runtime& runtime, MPI_Comm comm, const Hints& hints);

// Returns the engine for the communicator's collectives. The communicator's info keys take
// precedence over the job's options.
Engine engine_for(const Runtime& runtime, const Communicator& communicator);

}  // namespace weft
