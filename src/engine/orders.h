// Orders: programs that the ranks on one core leave to one thread, the core agent, in memory that
// their processes share. Each rank has a desk there with room for some orders, and writes on its
// own desk only. An order is in one hand at a time: its rank's or the agent's.
// Why: K threads on a core are switched by the kernel whether they have work or not; one thread
// that has all their programs goes on with whichever can go on (JHPCN jh250041, Topic 1).
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/floating_point.h"
#include "engine/baton.h"
#include "engine/operation.h"
#include "schedule/schedule.h"
#include "shm/known_segments.h"
#include "shm/node_windows.h"
#include "shm/reduction.h"
#include "transport/operands.h"

namespace weft {

// A program and what it works on, as another process on the same node needs it.
struct Work {
  std::uintptr_t program = 0;        // in its rank's process
  std::uint32_t instructions = 0;    // that it has
  std::uint32_t next = 0;            // the first that is left
  bool begun = false;                // the turn has begun
  bool synchronizing = false;        // as of its schedule
  std::uint32_t signals_before = 0;  // counters go on from there
  std::optional<KernelName> kernel;  // where it reduces
  FloatingPoint computes_as;         // in that case
  // The windows: where their memory is, and what they are made with.
  KnownSegments::Place memory;
  int place = 0, places = 0;
  std::int64_t window_bytes = 0;
  NodeTurn turn;
  // By Buffer: an address in the rank's process, or the distance from the windows' memory.
  std::array<std::uintptr_t, kBuffers> base{};
};

// operands, turn: of the operation whose rest it is. nullopt: only its rank can do it.
std::optional<Work> work_of(const Schedule& schedule, const Operands& operands,
                            const NodeTurn& turn, const Operation::Rest& rest);

struct alignas(64) Order {
  enum class State : std::uint32_t {
    none,
    open,      // either may take it
    held,      // one of them has it
    over,      // done; its rank is to end the operation
    returned,  // the agent cannot go on with it: its rank must
  };
  std::atomic<State> state;
  std::atomic<std::uint32_t> wanted;  // its rank waits until the agent lets it go
  std::uint64_t number;               // another one for each order on this desk
  Work work;                          // of whoever has it in hand
};

// In shared memory, zeroes at first.
struct DeskMemory {
  static constexpr int kOrders = 32;

  // Of the agent of this core, in the desk of its own rank.
  Baton::Place agent;
  enum class Serves : std::uint32_t { not_yet, yes, no_more, has_ended };
  std::atomic<Serves> serves;
  pthread_mutex_t alive;  // the agent's thread has it: the kernel tells when that ends

  // Of the rank, before anybody leaves orders.
  alignas(64) pid_t process;
  int rank;                                 // in MPI_COMM_WORLD
  std::uintptr_t trial;                     // of a number there that the agent reads
  std::atomic<std::uint32_t> is_reachable;  // by the agent

  alignas(64) std::atomic<std::uint32_t> open;  // orders that are open or held
  std::atomic<std::uint32_t> returned;          // orders that are
  std::atomic<std::uint32_t> wake;              // futex of the rank's own progress thread
  std::array<Order, kOrders> orders;
};

// The rank's side. Thread-safe but for leave(), which one thread at a time calls.
class Desk {
 public:
  static constexpr int kNone = -1;

  // memory: what holds both. agents: the desk of the agent's own rank.
  Desk(std::shared_ptr<void> memory, DeskMemory* own, DeskMemory* agents);

  // Its number; kNone: no room, or nobody carries out orders.
  int leave(const Work& work);

  bool is_under_way(int order) const {
    const Order::State now = at(order).state.load(std::memory_order_acquire);
    return now == Order::State::open || now == Order::State::held;
  }
  // From here on it is its rank's alone; waits for the agent to let it go. nullopt: the agent has
  // ended in the midst of it.
  struct Rest {
    bool over = false, begun = false;
    std::uint32_t next = 0;
  };
  std::optional<Rest> take(int order);

  bool some_have_returned() const { return own_->returned.load() > 0; }
  // Changes where an order has been returned.
  std::atomic<std::uint32_t>& wake() const { return own_->wake; }
  bool agent_has_ended() const;

 private:
  Order& at(int order) const { return own_->orders[static_cast<std::size_t>(order)]; }

  std::shared_ptr<void> memory_;
  DeskMemory* own_;
  DeskMemory* agents_;
  Baton agent_;  // calls it
  std::uint64_t left_ = 0;
};

}  // namespace weft
