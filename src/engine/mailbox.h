// Commands: programs that ranks on one core leave to a single thread, the core agent, in memory
// that their processes share. Each rank has a mailbox there with room for several commands, and
// writes only to its own. A command is either its rank's or the agent's. With K threads on a core
// the kernel switches them whether they have work or not; a single thread with all programs
// continues any that can (JHPCN jh250041, Topic 1).
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
#include "shm/node_buffers.h"
#include "shm/reduction.h"
#include "transport/operands.h"

namespace weft {

// A program and its data, as another process on the same node needs them.
struct Work {
  std::uintptr_t program = 0;        // in its rank's process
  std::uint32_t instructions = 0;    // that it has
  std::uint32_t next = 0;            // the first that is left
  bool begun = false;                // the turn has begun
  bool synchronizing = false;        // as of its schedule
  std::uint32_t signals_before = 0;  // counters continue from there
  std::optional<KernelName> kernel;  // where it reduces
  FloatingPoint computes_as;         // in that case
  // The node buffers' memory, and the arguments with which they were made.
  KnownSegments::Place memory;
  int node_rank = 0, ranks = 0;
  std::int64_t buffer_bytes = 0;
  NodeTurn turn;
  // An address in the rank's process, or the distance from the node buffers' memory, by Buffer.
  std::array<std::uintptr_t, kBuffers> base{};
};

// operands, turn: those of the operation. Returns nullopt if only its rank can carry out the rest.
std::optional<Work> work_of(const Schedule& schedule, const Operands& operands,
                            const NodeTurn& turn, const Operation::Rest& rest);

struct alignas(64) Command {
  enum class State : std::uint32_t {
    none,
    open,      // either may take it
    claimed,   // by one of them
    over,      // done; its rank is to end the operation
    returned,  // the agent cannot carry it out: its rank must
  };
  std::atomic<State> state;
  std::atomic<std::uint32_t> wanted;  // its rank waits until the agent releases it
  std::uint64_t number;               // another one for each command in this mailbox
  Work work;                          // belongs to whoever has claimed the command
};

// A rank's mailbox in shared memory, initially zero.
struct MailboxMemory {
  static constexpr int kCommands = 32;

  // These are used by the agent of this core, in the mailbox of its own rank.
  Baton::Place agent;
  enum class Serves : std::uint32_t { not_yet, yes, no_more, has_ended };
  std::atomic<Serves> serves;
  pthread_mutex_t alive;  // the agent's thread has it: the kernel tells when that ends

  // These are set by the rank before anybody leaves commands.
  alignas(64) pid_t process;
  int rank;                                 // in MPI_COMM_WORLD
  std::uintptr_t trial;                     // of a number there that the agent reads
  std::atomic<std::uint32_t> is_reachable;  // by the agent

  alignas(64) std::atomic<std::uint32_t> open;  // commands that are open or claimed
  std::atomic<std::uint32_t> returned;          // commands that are
  std::atomic<std::uint32_t> wake;              // futex of the rank's own progress thread
  std::array<Command, kCommands> commands;
};

// The rank's side of its mailbox. Thread-safe, except that only one thread at a time may call
// leave().
class Mailbox {
 public:
  static constexpr int kNone = -1;

  // memory: keeps both mailboxes alive. agents: the mailbox of the agent's own rank.
  Mailbox(std::shared_ptr<void> memory, MailboxMemory* own, MailboxMemory* agents);

  // Leaves a command and returns its number; kNone if there is no room, or no agent.
  int leave(const Work& work);

  bool is_under_way(int command) const {
    const Command::State now = at(command).state.load(std::memory_order_acquire);
    return now == Command::State::open || now == Command::State::claimed;
  }
  // Takes a command back for its rank; waits until the agent has released it. Returns nullopt if
  // the agent has ended while it carried the command out.
  struct Rest {
    bool over = false, begun = false;
    std::uint32_t next = 0;
  };
  std::optional<Rest> take(int command);

  bool some_have_returned() const { return own_->returned.load() > 0; }
  // Returns a counter that changes when a command is returned.
  std::atomic<std::uint32_t>& wake() const { return own_->wake; }
  bool agent_has_ended() const;

 private:
  Command& at(int command) const { return own_->commands[static_cast<std::size_t>(command)]; }

  std::shared_ptr<void> memory_;
  MailboxMemory* own_;
  MailboxMemory* agents_;
  Baton agent_;  // calls it
  std::uint64_t left_ = 0;
};

}  // namespace weft
