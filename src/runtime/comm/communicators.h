// Communicators: Weft's data on the application's communicators. Each has an internal communicator
// (runtime/comm/internal_communicators.h), since Weft's messages must not match the application's.
// It is made inside calls that are collective anyway, never inside MPI_I*.
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

// Collective over `comm`, an internal communicator with these members. Returns nullptr on all ranks
// if the nodes have different numbers of ranks, or if there is no communicator to spare.
std::shared_ptr<Leaders> make_leaders(MPI_Comm comm, const std::vector<int>& members, int rank,
                                      const Nodes& nodes);

// Is shared by the registry and all operations under way: MPI_Comm_free with a pending collective
// takes effect when that has completed.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // If `internal` is `user` itself, Weft has no internal communicator; only the library's own
  // non-blocking calls then use this object.
  Communicator(MPI_Comm user, InternalCommunicator internal, int rank, int size);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const MPI_Comm user;
  const MPI_Comm internal;
  const bool has_own;  // which whole collectives of the library's need
  // Is set when the application has freed `user`. If no request was made, nothing is under way on
  // any rank, and all ranks free the internal communicator in that call.
  std::atomic<bool> freed{false};
  Processor processor = Processor::other;  // of all its ranks, where some share memory
  const Tags tags;                         // on the internal communicator
  const Route route;                       // for messages there
  const int rank;
  const int size;
  const int number;  // of those that Weft knows on this rank; 0: MPI_COMM_WORLD
  std::atomic<std::uint32_t> initialised{0};  // persistent collectives, each of which has its tag
  // Returns whether a tag is left, with one answer for all ranks; otherwise an earlier request with
  // that tag may still exist.
  bool has_tag_left() const { return initialised.load() < tags.each; }
  // Returns the ranks in MPI_COMM_WORLD, sorted, of an internal communicator that is not shared.
  const std::vector<int>& members() const { return internal_.members; }
  // Collective, once: finds out which ranks share memory, by their ranks in MPI_COMM_WORLD, and
  // sets that memory up.
  void share_memory(const std::vector<int>& world_ranks);

  // Asks for a worker, where engine auto may take one, unless there is one. Only the thread that
  // begins the communicator's calls may call it. wants_worker() is the same on all ranks; a refusal
  // by the system is not.
  void want_worker(Observer& observer);
  bool wants_worker() const { return wants_worker_; }

  // Notes, on all ranks alike, that a request was made for a collective on it, which may outlive
  // it.
  void retain_for_request() { is_retained_.store(true, std::memory_order_relaxed); }

  Hints hints;
  std::optional<Neighbors> neighbors;  // none: neighborhood collectives pass on
  // Notes that an operation has failed: its messages may arrive later.
  void has_failed() { usable_.store(false, std::memory_order_relaxed); }

  // Returns the number of the next collective, which gives its tag. All ranks take one for each
  // collective, even one with nothing to send. Only one thread at a time may start collectives on a
  // communicator.
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

  std::unique_ptr<Worker> worker;          // of engine tcc, and where auto has wanted one
  std::shared_ptr<const Nodes> nodes;      // nullptr where no ranks share memory
  std::shared_ptr<const Domains> domains;  // of one node; nullptr where it has one only
  std::unique_ptr<NodeMemory> memory;      // of this rank's node; nullptr where it shares none
  SegmentRoom room;                        // for persistent requests; none where it shares none
  std::shared_ptr<Leaders> leaders;        // where an algorithm asks for them; else nullptr
  Attributes attributes;
  bool on_one_node() const { return nodes && nodes->count() == 1; }
  // Is called before a schedule is carried out in the communicator's memory.
  void note_use(const Schedule& schedule);

 private:
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<bool> is_retained_{false}, usable_{true};
  bool wants_worker_ = false;
  InternalCommunicator internal_;
  NodeRoom* node_room_ = nullptr;  // what `memory` is in, and has a share of
  std::mutex mutex_;               // guards schedules_
  ScheduleCache schedules_;
};

// The communicator on which Weft calls whole collectives of the library: the internal communicator
// or, if that is shared, one made for this. Its creation and destruction are collective.
class OwnCommunicator {
 public:
  explicit OwnCommunicator(Communicator& of);
  ~OwnCommunicator();
  OwnCommunicator(const OwnCommunicator&) = delete;
  OwnCommunicator& operator=(const OwnCommunicator&) = delete;

  bool there() const;  // or the library has none to give
  MPI_Comm get() const { return of_->has_own ? of_->internal : made_; }

 private:
  const std::shared_ptr<const Communicator> of_;
  MPI_Comm made_;
};

// The number of communicators besides MPI_COMM_WORLD, the first ones, that may try the library's
// whole collectives where engine auto learns.
inline constexpr int kMostThatTry = 15;

class Communicators {
 public:
  // Returns the object of this process.
  static Communicators& own();

  // Returns false for communicators of two groups, of one rank, with processes of other jobs, or of
  // sessions. The answer is the same on all its ranks.
  static bool may_have_internal(MPI_Comm user);

  // The wishes besides an internal communicator: one that is not shared, if there are fewer than
  // most_own; leaders and a worker, which need that. worker_for: nullptr if none is wanted;
  // worker_core: -1 if the observer places it.
  struct Wanted {
    int most_own = 0;
    bool leaders = false;
    Observer* worker_for = nullptr;
    int worker_core = -1;
  };
  // Collective over `user`: makes the internal communicator. If that is not possible (see
  // may_have_internal(), too many communicators, or some rank cannot start a wanted worker),
  // nothing is kept and its calls pass on unchanged.
  void add(MPI_Comm user, const Hints& hints, const Wanted& wanted);
  // Returns whether there was no internal communicator to spare for it.
  bool is_crowded_out(MPI_Comm user);
  // Returns nullptr if its calls pass on. Valid until remove(), which no thread may race with its
  // own call.
  Communicator* find(MPI_Comm user);
  std::shared_ptr<Communicator> remove(MPI_Comm user);
  // Registers a communicator again that was removed, but not freed.
  void put_back(std::shared_ptr<Communicator> removed);

  std::vector<std::shared_ptr<Communicator>> all();

  // Returns whether MPI_COMM_WORLD has a worker (of engine tcc, or wanted by auto). It may still be
  // inside a collective there, so that the ranks begin none. The answer is the same on all ranks.
  bool world_has_worker();
  // Collective over all ranks, in MPI_Finalize: forgets all communicators, and frees their internal
  // ones if all ranks have finished with them.
  void free_all();

  // Collective over `comm`. Returns the registered object, else a new one that is not registered;
  // nullptr if none can be made.
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

// Weft's side of a new communicator of the application's. Collective over `comm`.
void add_communicator(Runtime& runtime, MPI_Comm comm, const Hints& hints);

// Returns the engine of the communicator's collectives, by its hints or else by the job's options.
Engine engine_for(const Runtime& runtime, const Communicator& communicator);

}  // namespace weft
