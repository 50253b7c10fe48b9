// Implements the core agent. The thread that serves loops over the mailboxes of all ranks on its
// core.
#include "engine/core_agent.h"

#include <algorithm>
#include <new>
#include <string>

#include "base/log.h"
#include "engine/futex.h"

namespace weft {
namespace {

void make_robust(pthread_mutex_t* mutex) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &kind);
  pthread_mutexattr_destroy(&kind);
}

}  // namespace

CoreAgent::CoreAgent(std::shared_ptr<void> memory, MailboxMemory* own,
                     const std::vector<MailboxMemory*>& mailboxes, int ranks_of_node)
    : memory_(std::move(memory)),
      own_(own),
      serves_all_of_node_(mailboxes.size() == static_cast<std::size_t>(ranks_of_node)) {
  for (MailboxMemory* mailbox : mailboxes) clients_.emplace_back(mailbox);
  make_robust(&own->alive);
}

void CoreAgent::begin() {
  pthread_mutex_lock(&own_->alive);
  own_->serves.store(MailboxMemory::Serves::yes);
  own_->serves.notify_all();
}

void CoreAgent::wait_until_it_serves() const {
  own_->serves.wait(MailboxMemory::Serves::not_yet);
}

bool CoreAgent::serve() {
  bool progressed = false;
  for (Client& client : clients_) progressed = progress(client) || progressed;
  return progressed;
}

// Returns all open commands to their ranks when the agent ends. It first tells the ranks that it
// serves no more, so that they leave no further commands.
void CoreAgent::close() {
  own_->serves.store(MailboxMemory::Serves::no_more);
  for (Client& client : clients_) {
    for (Command& command : client.mailbox->commands) {
      Command::State open = Command::State::open;
      if (command.state.compare_exchange_strong(open, Command::State::claimed))
        give_back(*client.mailbox, command);
    }
  }
  pthread_mutex_unlock(&own_->alive);
}

bool CoreAgent::has_commands() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const Client& client) {
    return !client.ended.load() && client.mailbox->open.load() > 0;
  });
}

bool CoreAgent::progress(Client& client) {
  if (client.ended || client.mailbox->open.load() == 0) return false;
  bool progressed = false;
  for (std::size_t i = 0; i < client.served.size() && !client.ended; ++i)
    progressed = progress(client, i) || progressed;
  return progressed;
}

// Carries out command number `number` of a rank as far as possible. Returns whether it has carried
// out any instruction.
bool CoreAgent::progress(Client& client, std::size_t number) {
  MailboxMemory& mailbox = *client.mailbox;
  Command& command = mailbox.commands[number];
  Command::State open = Command::State::open;
  if (command.state.load(std::memory_order_relaxed) != open || command.wanted.load() != 0 ||
      !command.state.compare_exchange_strong(open, Command::State::claimed))
    return false;
  const std::uint32_t before = command.work.next;
  const RemoteProgram::State state = carry_out(client, number);
  const bool progressed = command.work.next != before || state == RemoteProgram::State::over;
  switch (state) {
    case RemoteProgram::State::blocked:
      command.state.store(Command::State::open, std::memory_order_release);
      break;
    case RemoteProgram::State::over:
      client.served[number]->program.end();
      mailbox.open.fetch_sub(1);
      command.state.store(Command::State::over, std::memory_order_release);
      mailbox.tell_waiting();
      break;
    case RemoteProgram::State::unable:
      give_back(mailbox, command);
      break;
    case RemoteProgram::State::ended:
      client.ended = true;
      say("rank " + std::to_string(mailbox.rank) +
          " has ended in the midst of a collective: the ranks that wait for it wait in vain");
      break;
  }
  return progressed;
}

RemoteProgram::State CoreAgent::carry_out(Client& client, std::size_t number) {
  Command& command = client.mailbox->commands[number];
  auto& served = client.served[number];
  try {
    if (!served) served = std::make_unique<Served>();
    if (served->number != command.number) {
      served->number = command.number;
      if (!served->program.begin(command.work, client.mailbox->process))
        return RemoteProgram::State::unable;
    }
    return served->program.progress(command.wanted, &command.work);
  } catch (const std::bad_alloc&) {
    return RemoteProgram::State::unable;
  }
}

// Returns a command to its rank, and wakes the rank's threads that sleep.
void CoreAgent::give_back(MailboxMemory& mailbox, Command& command) {
  mailbox.open.fetch_sub(1);
  mailbox.returned.fetch_add(1);
  command.state.store(Command::State::returned);
  mailbox.wake.fetch_add(1);
  wake_one(mailbox.wake, FutexOf::processes);
  mailbox.tell_waiting();
}

}  // namespace weft
