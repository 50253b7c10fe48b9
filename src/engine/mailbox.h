// Commands: programs that the ranks on one core leave to a single thread, the core agent. Each rank
// has a mailbox in memory that their processes share, with space for several commands, and writes
// only to its own. A command belongs either to its rank or to the agent. With one thread per rank
// on a core, the kernel would switch threads even if they have no work; a single thread with all
// programs continues any that can (JHPCN jh250041, Topic 1).
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
#include "engine/operation.h"
#include "engine/sleeper.h"
#include "schedule/schedule.h"
#include "shm/known_segments.h"
#include "shm/node_buffers.h"
#include "shm/reduction.h"
#include "transport/operands.h"

namespace weft {

// A program and its data, in the form that another process on the node needs.
struct Work {
  std::uintptr_t program = 0;        // address of the program in its rank's process
  std::uint32_t instructions = 0;    // number of the program's instructions
  std::uint32_t next = 0;            // index of the first instruction that is not yet done
  bool begun = false;                // the operation has begun to use the node buffers
  bool synchronizing = false;        // Schedule::synchronizing of the schedule
  std::uint32_t signals_before = 0;  // value from which the signal counters continue
  std::optional<KernelName> kernel;  // reduction kernel; nullopt if the program does not reduce
  FloatingPoint computes_as;         // floating-point mode for reductions
  // The shared memory of the node buffers, and the arguments from which they were constructed.
  KnownSegments::Place memory;
  int node_rank = 0, ranks = 0;
  std::int64_t buffer_bytes = 0;
  NodeBufferUse turn;
  // Indexed by Buffer: an address in the rank's process, or the offset in the memory of the node
  // buffers.
  std::array<std::uintptr_t, kBuffers> base{};
};

// Describes the steps of an operation that are left. operands, turn: the operation's buffers, and
// its use of the node buffers. Returns nullopt if only the operation's own rank can carry out these
// steps.
std::optional<Work> work_of(const Schedule& schedule, const Operands& operands,
                            const NodeBufferUse& turn, const Operation::Rest& rest);

struct alignas(64) Command {
  enum class State : std::uint32_t {
    none,
    open,      // the rank or the agent may claim it
    claimed,   // the rank or the agent works on it
    over,      // all instructions are done; the rank must complete the operation
    returned,  // the agent cannot carry the command out, so its rank must
  };
  std::atomic<State> state;
  std::atomic<std::uint32_t> wanted;  // nonzero while the rank wants the command back
  std::uint64_t number;               // differs for each command in this mailbox
  Work work;                          // belongs to whichever side has claimed the command
};

// A rank's mailbox in shared memory, initially zero.
struct MailboxMemory {
  static constexpr int kCommands = 32;

  // The agent of this core uses the next two members, in the mailbox of its own rank.
  enum class Serves : std::uint32_t { not_yet, yes, no_more, has_ended };
  std::atomic<Serves> serves;
  pthread_mutex_t alive;  // locked by the agent's thread; being robust, it tells when that thread
                          // has ended

  // The rank sets the next three members before any rank leaves commands.
  alignas(64) pid_t process;
  int rank;              // rank in MPI_COMM_WORLD
  std::uintptr_t trial;  // address of a number in the rank's process; the agent reads it to test
                         // access
  std::atomic<std::uint32_t> is_reachable;  // nonzero if the agent can read the rank's memory

  alignas(64) std::atomic<std::uint32_t> open;  // number of commands that are open or claimed
  std::atomic<std::uint32_t> returned;          // number of commands in state `returned`
  // The futex of the rank's progress thread, which may serve as the agent, and how it sleeps.
  std::atomic<std::uint32_t> wake;
  std::atomic<Asleep> asleep;
  std::array<Command, kCommands> commands;
};

// A rank's access to its own mailbox. It is thread-safe, except that only one thread at a time may
// call leave().
class Mailbox {
 public:
  static constexpr int kNone = -1;

  // memory: keeps both mailboxes alive. own: the mailbox of this rank. agents: the mailbox of the
  // rank whose process runs the agent.
  Mailbox(std::shared_ptr<void> memory, MailboxMemory* own, MailboxMemory* agents);

  // Leaves a command and returns its number; kNone if the mailbox is full or there is no agent.
  int leave(const Work& work);

  bool is_under_way(int command) const {
    const Command::State now = at(command).state.load(std::memory_order_acquire);
    return now == Command::State::open || now == Command::State::claimed;
  }
  // The state of a command that the rank has taken back: whether all instructions are done, whether
  // the use of the node buffers has begun, and the index of the next instruction.
  struct Rest {
    bool over = false, begun = false;
    std::uint32_t next = 0;
  };
  // Takes a command back for its rank after waiting until the agent has released it. Returns
  // nullopt if the agent ended while it carried the command out.
  std::optional<Rest> take(int command);

  bool some_have_returned() const { return own_->returned.load() > 0; }
  // Return the futex by which the agent wakes the rank's progress thread when it returns a command,
  // and by which ranks wake an agent; and the place where that thread announces its sleep.
  std::atomic<std::uint32_t>& wake() const { return own_->wake; }
  std::atomic<Asleep>& asleep() const { return own_->asleep; }
  bool agent_has_ended() const;

 private:
  void wake_agent() const;
  Command& at(int command) const { return own_->commands[static_cast<std::size_t>(command)]; }

  std::shared_ptr<void> memory_;
  MailboxMemory* own_;
  MailboxMemory* agents_;
  std::uint64_t left_ = 0;
};

}  // namespace weft
