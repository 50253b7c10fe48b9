// Commands: compiled schedules with their remaining steps, which the ranks on one core leave to a
// single thread, the core agent. Each rank has a mailbox in memory that their processes share, with
// space for several commands, and writes only to its own. A command belongs either to its rank or
// to the agent. With one thread per rank on a core, the kernel would switch threads even if they
// have no work; a single thread with all schedules continues any that can (JHPCN jh250041, Topic
// 1).
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

// Work: the remaining steps of a collective and its data, in the form that another process on the
// node needs.
struct Work {
  // Address of the compiled schedule in its rank's process.
  std::uintptr_t program = 0;
  std::uint32_t instructions = 0;  // number of its instructions
  std::uint32_t next = 0;          // index of the first instruction that is not yet done
  // True if the operation has begun to use the node's shared memory.
  bool begun = false;
  // Value of Schedule::synchronizing for the operation's schedule.
  bool synchronizing = false;
  // Number of signals that an abandoned schedule of the same operation has given before.
  std::uint32_t signals_before = 0;
  std::optional<KernelName> kernel;  // reduction kernel; nullopt if the schedule does not reduce
  FloatingPoint computes_as;         // floating-point mode in which the rank reduces
  // The shared memory of the rank's NodeBuffers, and the other arguments from which they were
  // constructed.
  KnownSegments::Place memory;
  int node_rank = 0, ranks = 0;
  std::int64_t buffer_bytes = 0;
  NodeBufferUse turn;
  // Addresses of the buffers, indexed by Buffer: an address in the rank's process or, for shared
  // memory of the node, the offset in a node buffer.
  std::array<std::uintptr_t, kBuffers> base{};
};

// Describes the remaining steps of an operation for the core agent. operands: the operation's
// buffers. turn: its use of the node's shared memory. Returns nullopt if only the operation's own
// process can carry out these steps.
std::optional<Work> work_of(const Schedule& schedule, const Operands& operands,
                            const NodeBufferUse& turn, const Operation::Rest& rest);

struct alignas(64) Command {
  enum class State : std::uint32_t {
    none,
    open,      // neither side works on it; the rank or the agent may claim it
    claimed,   // the rank or the agent has claimed it and works on it
    over,      // all instructions are done; the rank must still complete the operation
    returned,  // the agent cannot continue the command, so its rank must
  };
  std::atomic<State> state;
  std::atomic<std::uint32_t> wanted;  // nonzero if the rank wants the command back
  std::uint64_t number;               // a number that no other command in this mailbox has had
  // The steps to do; only the side that has claimed the command may use it.
  Work work;
};

// MailboxMemory: a rank's mailbox in shared memory. It must be zero at first.
struct MailboxMemory {
  static constexpr int kCommands = 32;

  // The agent of this core uses the next two members, in the mailbox of its own rank.
  enum class Serves : std::uint32_t { not_yet, yes, no_more, has_ended };
  std::atomic<Serves> serves;
  // The agent's thread holds this robust mutex, by which others learn of its end.
  pthread_mutex_t alive;

  // The rank sets the next three members before any rank on this core leaves commands.
  alignas(64) pid_t process;
  int rank;  // the rank's number in MPI_COMM_WORLD
  // Address of a number in the rank's process, which the agent reads to find out whether it can.
  std::uintptr_t trial;
  // Nonzero if the agent can read the memory of the rank's process.
  std::atomic<std::uint32_t> is_reachable;

  alignas(64) std::atomic<std::uint32_t> open;  // number of commands that are open or claimed
  std::atomic<std::uint32_t> returned;          // number of commands in state `returned`
  // The futex of the rank's progress thread, which may serve as the agent, and how it sleeps.
  std::atomic<std::uint32_t> wake;
  std::atomic<Asleep> asleep;
  // The futex of the rank's application threads that wait for collectives: it changes whenever one
  // of the rank's collectives ends or comes back to the rank. waiting: how many of them may sleep.
  std::atomic<std::uint32_t> changes;
  std::atomic<std::uint32_t> waiting;
  std::array<Command, kCommands> commands;

  // Wakes the rank's application threads that sleep until something has ended. It must follow the
  // change that they wait for.
  void tell_waiting() {
    changes.fetch_add(1);
    if (waiting.load() > 0) wake_all(changes, FutexOf::processes);
  }
};

// Mailbox: a rank's access to its own mailbox. It is thread-safe, except that only one thread at a
// time may call leave().
class Mailbox {
 public:
  static constexpr int kNone = -1;

  // memory: keeps both mailboxes alive. own: the mailbox of this rank. agents: the mailbox of the
  // rank in whose process the core agent runs.
  Mailbox(std::shared_ptr<void> memory, MailboxMemory* own, MailboxMemory* agents);

  // Leaves a command for the core agent, and returns its index; kNone if the mailbox is full or
  // there is no agent.
  int leave(const Work& work);

  bool is_under_way(int command) const {
    const Command::State now = at(command).state.load(std::memory_order_acquire);
    return now == Command::State::open || now == Command::State::claimed;
  }
  // The state of a command that the rank has taken back. over: all instructions are done. begun:
  // the operation has begun to use the node's shared memory. next: index of the next instruction.
  struct Rest {
    bool over = false, begun = false;
    std::uint32_t next = 0;
  };
  // Takes a command back from the agent; if the agent works on it, waits until the agent has
  // released it. Returns nullopt if the agent ended while it worked on the command.
  std::optional<Rest> take(int command);

  bool some_have_returned() const { return own_->returned.load() > 0; }
  // Return the futex by which the agent wakes the rank's progress thread when it returns a command,
  // and by which ranks wake an agent; and the place where that thread announces its sleep.
  std::atomic<std::uint32_t>& wake() const { return own_->wake; }
  std::atomic<Asleep>& asleep() const { return own_->asleep; }
  bool agent_has_ended() const;

  // Returns the number of commands that the agent may still carry out.
  int open() const { return static_cast<int>(own_->open.load()); }
  // Lets the calling application thread sleep until tell_waiting(), but for `ns` nanoseconds at
  // most. It does not sleep if must_wait() returns false. must_wait() is called after the thread
  // has announced its sleep, so that no change is missed.
  template <class MustWait>
  void sleep(std::int64_t ns, MustWait must_wait) const {
    own_->waiting.fetch_add(1);
    const std::uint32_t changes = own_->changes.load();
    if (must_wait()) sleep_on(own_->changes, changes, FutexOf::processes, ns);
    own_->waiting.fetch_sub(1);
  }
  void tell_waiting() const { own_->tell_waiting(); }

 private:
  void wake_agent() const;
  Command& at(int command) const { return own_->commands[static_cast<std::size_t>(command)]; }

  std::shared_ptr<void> memory_;
  MailboxMemory* own_;
  MailboxMemory* agents_;
  std::uint64_t left_ = 0;
};

}  // namespace weft
