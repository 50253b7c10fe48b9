// Communicators: Weft's data on the application's communicators. Each has an internal communicator
// (runtime/comm/internal_communicators.h), since Weft's messages must not match the application's.
// It is made only in calls that are collective and may block anyway, never in non-blocking ones
// (MPI_I*).
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

// Makes the communicators of the nodes' leaders, ranks with equal node ranks. Collective over
// `comm`, an internal communicator with these members. Returns nullptr on all ranks if the nodes
// have different numbers of ranks, or if the library has no communicator left.
std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, const std::vector<int>& members, int rank,
                                      const Nodes& nodes);

// Weft's data on a communicator of the application. The registry and all operations under way share
// the object: MPI_Comm_free with a pending collective takes effect when that has completed.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // If `internal` is `user` itself, Weft has no internal communicator. Then only the library's own
  // non-blocking calls use this object.
  Communicator(MPI_Comm user, InternalCommunicator internal, int rank, int size);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const MPI_Comm user;
  const MPI_Comm internal;
  const bool has_own;  // the internal communicator is not shared, as whole collectives of the
                       // library require
  // True once the application has freed `user`. If no request was ever made, no rank has an
  // operation under way then, and all ranks free the internal communicator in that call.
  std::atomic<bool> freed{false};
  Processor processor = Processor::other;  // kind of processor, if some of the communicator's ranks
                                           // share memory
  const Tags tags;                         // tags to use on the internal communicator
  const Route route;                       // route for messages on the internal communicator
  const int rank;
  const int size;
  const int number;  // number among this rank's communicators; 0 for MPI_COMM_WORLD
  std::atomic<std::uint32_t> initialised{0};  // number of persistent collectives so far, each of
                                              // which has its own tag
  // Returns whether a tag is left for a persistent collective; otherwise an earlier request with
  // the next tag may still exist. The result is equal on all ranks.
  bool has_tag_left() const { return initialised.load() < tags.each; }
  // Returns the sorted ranks in MPI_COMM_WORLD of an internal communicator that is not shared.
  const std::vector<int>& members() const { return internal_.members; }
  // Determines which ranks share memory, and sets that memory up. Collective over the communicator;
  // is called once. world_ranks: the communicator's ranks in MPI_COMM_WORLD.
  void share_memory(const std::vector<int>& world_ranks);

  // Starts a worker for engine auto if there is none and the limit allows. Only the thread that
  // begins the communicator's calls may call it. wants_worker() is equal on all ranks, but the
  // system may refuse the worker's thread on some ranks.
  void want_worker(Observer& observer);
  bool wants_worker() const { return wants_worker_; }

  // Notes on all ranks that a request was made for a collective on this communicator. Operations
  // may outlive the communicator.
  void retain_for_request() { is_retained_.store(true, std::memory_order_relaxed); }

  Hints hints;
  std::optional<Neighbors> neighbors;  // nullopt: neighborhood collectives are passed to the
                                       // library
  // Notes that an operation has failed, so that its messages may arrive later.
  void has_failed() { usable_.store(false, std::memory_order_relaxed); }

  // Returns the number of the next collective, which determines its tag. All ranks take a number
  // for each collective, even if they have nothing to send. Only one thread at a time may start
  // collectives on a communicator.
  std::uint32_t next_in_sequence() {
    const std::uint32_t number = sequence_.load(std::memory_order_relaxed);
    sequence_.store(number + 1, std::memory_order_relaxed);
    return number;
  }

  // Returns a schedule for this shape, from the cache or by `build`.
  template <class Build>
  std::shared_ptr<const Schedule> schedule(const Shape& shape, const void* algorithm, Build build) {
    const std::lock_guard lock(mutex_);
    return schedules_.find_or(shape, algorithm, [&] {
      Schedule made = build();
      note_use(made);
      return made;
    });
  }

  std::unique_ptr<Worker> worker;          // set for engine tcc, and after want_worker()
  std::shared_ptr<const Nodes> nodes;      // nullptr if no ranks share memory
  std::shared_ptr<const Domains> domains;  // NUMA domains of a single node; nullptr if it has only
                                           // one
  std::unique_ptr<NodeMemory> memory;  // memory of this rank's node; nullptr if this rank shares
                                       // none
  SegmentAllocator room;  // segment for persistent requests; empty if this rank shares no memory
  std::shared_ptr<Leaders> leaders;  // set if an algorithm uses leaders; else nullptr
  Attributes attributes;
  bool on_one_node() const { return nodes && nodes->count() == 1; }
  // Notes how much of the communicator's shared memory a schedule uses. Must be called before the
  // schedule is carried out there.
  void note_use(const Schedule& schedule);

 private:
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<bool> is_retained_{false}, usable_{true};
  bool wants_worker_ = false;
  InternalCommunicator internal_;
  NodeSharedMemory* node_shared_memory_ =
      nullptr;        // owner of `memory`, reused by communicators of the same ranks
  std::mutex mutex_;  // guards schedules_
  ScheduleCache schedules_;
};

// The communicator on which Weft calls whole collectives of the library: the internal communicator
// or, if that is shared, one made for this purpose. Creation and destruction are collective.
class OwnCommunicator {
 public:
  explicit OwnCommunicator(Communicator& of);
  ~OwnCommunicator();
  OwnCommunicator(const OwnCommunicator&) = delete;
  OwnCommunicator& operator=(const OwnCommunicator&) = delete;

  bool there() const;  // returns whether the library could make a communicator
  MPI_Comm get() const { return of_->has_own ? of_->internal : made_; }

 private:
  const std::shared_ptr<const Communicator> of_;
  MPI_Comm made_;
};

// The number of communicators besides MPI_COMM_WORLD on which engine auto may try whole collectives
// of the library. These are the first ones that the application makes.
inline constexpr int kMostThatTry = 15;

class Communicators {
 public:
  // Returns the object of this process.
  static Communicators& own();

  // Returns whether Weft may make an internal communicator. It may not for intercommunicators, for
  // a single rank, with processes of other jobs, or for communicators of sessions. The result is
  // equal on all ranks of `user`.
  static bool may_have_internal(MPI_Comm user);

  // The requirements for a new communicator. most_own: the internal communicator is unshared if
  // fewer unshared ones than this exist. leaders, worker_for: leaders or a worker are wanted, which
  // need an unshared one. worker_core: -1 if the observer places the worker's thread.
  struct Wanted {
    int most_own = 0;
    bool leaders = false;
    Observer* worker_for = nullptr;
    int worker_core = -1;
  };
  // Collective over `user`: makes the internal communicator. If that is impossible
  // (may_have_internal() is false, no communicator is left, or some rank cannot start a required
  // worker), the communicator's calls are passed to the library.
  void add(MPI_Comm user, const Hints& hints, const Wanted& wanted);
  // Returns whether this communicator has no internal communicator because all were in use.
  bool is_crowded_out(MPI_Comm user);
  // Returns Weft's data on the communicator; nullptr if its calls are passed to the library. The
  // result is valid until remove(), which no thread may call during a collective of its own.
  Communicator* find(MPI_Comm user);
  std::shared_ptr<Communicator> remove(MPI_Comm user);
  // Registers a communicator again that was removed but not freed.
  void put_back(std::shared_ptr<Communicator> removed);

  std::vector<std::shared_ptr<Communicator>> all();

  // Returns whether MPI_COMM_WORLD has a worker (engine tcc, or wanted by engine auto). The worker
  // may still be inside a collective, so that no other may begin. The result is equal on all ranks.
  bool world_has_worker();
  // Collective over all ranks, in MPI_Finalize: forgets all communicators, and frees their internal
  // ones if all ranks have finished with them.
  void free_all();

  // Returns the registered object for `comm`, or a new one that is not registered; nullptr if none
  // can be made. Collective over `comm`.
  std::shared_ptr<Communicator> find_or_make(MPI_Comm comm);

 private:
  // The last communicator that this thread looked up.
  struct Found {
    std::uint64_t epoch = 0;
    MPI_Comm user{};
    Communicator* communicator = nullptr;
  };

  std::mutex mutex_;  // guards the members below
  std::unordered_map<MPI_Comm, std::shared_ptr<Communicator>> known_;
  std::unordered_set<MPI_Comm> crowded_out_;
};

// Registers a new communicator of the application. Collective over `comm`.
void add_communicator(Runtime& runtime, MPI_Comm comm, const Hints& hints);

// Returns the engine for the communicator's collectives: by its hints or, without any, by the job's
// options.
Engine engine_for(const Runtime& runtime, const Communicator& communicator);

}  // namespace weft
