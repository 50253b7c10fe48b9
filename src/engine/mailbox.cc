// Implements Mailbox, a rank's access to its mailbox. The state of a command alone says whether the
// rank or the agent owns it. It is changed by compare-and-exchange wherever both sides may change
// it.
#include "engine/mailbox.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weft {

// Describes the remaining steps of an operation for the core agent (mailbox.h). Returns nullopt if
// only the operation's own process can carry them out. That is so, too, if floating-point
// exceptions raise signals in the rank, since its own process must receive these.
std::optional<Work> work_of(const Schedule& schedule, const Operands& operands,
                            const NodeBufferUse& turn, const Operation::Rest& rest) {
  NodeBuffers* const node_buffers = turn.node_buffers();
  const auto memory =
      node_buffers ? known_segments().place_of(node_buffers->memory()) : std::nullopt;
  if (!memory) return std::nullopt;
  const Program& program = schedule.program;
  const auto next = std::find_if(program.begin(), program.end(), [&](const Instruction& one) {
    return one.step >= rest.steps_done;
  });
  Work work{.program = reinterpret_cast<std::uintptr_t>(program.data()),
            .instructions = static_cast<std::uint32_t>(program.size()),
            .next = static_cast<std::uint32_t>(next - program.begin()),
            .begun = rest.begun,
            .synchronizing = schedule.synchronizing,
            .signals_before = rest.signals_before,
            .kernel = {},
            .computes_as = FloatingPoint::of_this_thread(),
            .memory = *memory,
            .node_rank = node_buffers->rank(),
            .ranks = node_buffers->ranks(),
            .buffer_bytes = node_buffers->buffer_bytes(),
            .turn = turn};
  if (reduces(schedule.shape.kind)) {
    work.kernel = operands.reduce ? name_of(operands.reduce) : std::nullopt;
    if (!work.kernel || work.computes_as.traps()) return std::nullopt;
  }
  for (std::size_t buffer = 0; buffer < work.base.size(); ++buffer) {
    const auto at = reinterpret_cast<std::uintptr_t>(operands.base[buffer]);
    const auto from = reinterpret_cast<std::uintptr_t>(node_buffers->memory());
    work.base[buffer] = is_in_node(static_cast<Buffer>(buffer)) ? at - from : at;
  }
  return work;
}

Mailbox::Mailbox(std::shared_ptr<void> memory, MailboxMemory* own, MailboxMemory* agents)
    : memory_(std::move(memory)), own_(own), agents_(agents) {}

// Leaves a command for the agent, unless the agent has told that it serves no more. An agent that
// ends first tells so, and then returns the commands that are open. So this function checks once
// more when its command is open: either the agent has seen the command, or this rank sees that it
// must take it back.
int Mailbox::leave(const Work& work) {
  if (agents_->serves.load() != MailboxMemory::Serves::yes) return kNone;
  for (int i = 0; i < MailboxMemory::kCommands; ++i) {
    Command& command = at(i);
    if (command.state.load(std::memory_order_acquire) != Command::State::none) continue;
    command.work = work;
    command.number = ++left_;
    command.wanted.store(0, std::memory_order_relaxed);
    own_->open.fetch_add(1);
    command.state.store(Command::State::open);
    Command::State open = Command::State::open;
    if (agents_->serves.load() != MailboxMemory::Serves::yes &&
        command.state.compare_exchange_strong(open, Command::State::none)) {
      own_->open.fetch_sub(1);
      return kNone;
    }
    wake_agent();
    return i;
  }
  return kNone;
}

// The agent announces its sleep before it looks for commands the last time (engine/sleeper.h).
void Mailbox::wake_agent() const {
  agents_->wake.fetch_add(1);
  if (agents_->asleep.load() != Asleep::no) wake_one(agents_->wake, FutexOf::processes);
}

std::optional<Mailbox::Rest> Mailbox::take(int number) {
  constexpr int kLooksPerQuestion = 256;
  Command& command = at(number);
  command.wanted.store(1, std::memory_order_relaxed);
  for (int looks = 1;; ++looks) {
    Command::State now = command.state.load(std::memory_order_acquire);
    if (now == Command::State::claimed) {
      if (looks % kLooksPerQuestion == 0 && agent_has_ended()) return std::nullopt;
      sched_yield();
      continue;
    }
    if (now == Command::State::open) {
      if (!command.state.compare_exchange_strong(now, Command::State::claimed)) continue;
      own_->open.fetch_sub(1);
    } else if (now == Command::State::returned) {
      own_->returned.fetch_sub(1);
    }
    const Rest rest{now == Command::State::over, command.work.begun, command.work.next};
    command.state.store(Command::State::none, std::memory_order_release);
    return rest;
  }
}

// Returns whether the agent's thread has ended without closing its mailbox, as when its process
// crashes. A robust mutex tells its owner's end to the first thread that locks it; that thread
// records it for the others.
bool Mailbox::agent_has_ended() const {
  const int code = pthread_mutex_trylock(&agents_->alive);
  if (code == EBUSY) return false;
  if (code == EOWNERDEAD) {
    agents_->serves.store(MailboxMemory::Serves::has_ended);
    pthread_mutex_consistent(&agents_->alive);
  }
  pthread_mutex_unlock(&agents_->alive);
  return agents_->serves.load() == MailboxMemory::Serves::has_ended;
}

}  // namespace weft
