// Implements the core agent. Its thread loops over the mailboxes of all ranks on its core.
#include "engine/core_agent.h"

#include <sys/prctl.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "engine/futex.h"

namespace weft {
namespace {

constexpr std::int64_t kUntilCalled_ns = 3'600'000'000'000;
constexpr unsigned long kTimerSlack_ns = 1000;  // how late the kernel may end a sleep; its default
                                                // of 50 us is longer than many of the sleeps

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
                     const std::vector<MailboxMemory*>& mailboxes, Observer& observer)
    : memory_(memory), own_(own), observer_(observer), baton_(std::move(memory), &own->agent, {}) {
  for (MailboxMemory* mailbox : mailboxes) {
    clients_.push_back({mailbox, {}});
    clients_.back().served.resize(MailboxMemory::kCommands);
  }
  make_robust(&own->alive);
}

Result<bool> CoreAgent::start() {
  auto started = thread_.start([this] { main(); });
  if (started) own_->serves.wait(MailboxMemory::Serves::not_yet);
  return started;
}

void CoreAgent::stop() {
  if (!thread_.is_started()) return;
  stopping_.store(true);
  own_->agent.calls.fetch_add(1);
  wake_one(own_->agent.calls, FutexOf::processes);
  thread_.join();
}

void CoreAgent::main() {
  observer_.thread_started("agent", 0);
  prctl(PR_SET_TIMERSLACK, kTimerSlack_ns);
  pthread_mutex_lock(&own_->alive);
  own_->serves.store(MailboxMemory::Serves::yes);
  own_->serves.notify_all();
  serve();
  close();
  pthread_mutex_unlock(&own_->alive);
}

// Advances the commands of all ranks until the agent is stopped, and sleeps while none can
// continue. A rank raises `calls` after it has left a command, so that a command left during this
// round ends the sleep.
void CoreAgent::serve() {
  while (!stopping_.load()) {
    const std::uint32_t calls_before = baton_.calls();
    bool progressed = false;
    for (Client& client : clients_) progressed = progress(client) || progressed;
    if (progressed) {
      pace_.progressed(now_ns());
      continue;
    }
    observer_.activity(Activity::asleep);
    const bool waits_for_ranks = has_commands();
    baton_.sleep(calls_before, waits_for_ranks ? pace_.sleep_ns(now_ns()) : kUntilCalled_ns);
    if (!waits_for_ranks) pace_.begin(now_ns());
    observer_.activity(Activity::working);
  }
}

// Returns all open commands to their ranks when the agent ends. It first tells the ranks that the
// agent serves no more, so that they leave no further commands.
void CoreAgent::close() {
  own_->serves.store(MailboxMemory::Serves::no_more);
  for (Client& client : clients_) {
    for (Command& command : client.mailbox->commands) {
      Command::State open = Command::State::open;
      if (command.state.compare_exchange_strong(open, Command::State::claimed))
        give_back(*client.mailbox, command);
    }
  }
}

bool CoreAgent::has_commands() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const Client& client) {
    return !client.ended && client.mailbox->open.load() > 0;
  });
}

bool CoreAgent::progress(Client& client) {
  if (client.ended || client.mailbox->open.load() == 0) return false;
  bool progressed = false;
  for (std::size_t i = 0; i < client.served.size() && !client.ended; ++i)
    progressed = progress(client, i) || progressed;
  return progressed;
}

// Advances a command of a rank. Returns true if an instruction has been carried out.
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

// Returns a command to its rank, and wakes the rank's progress thread, which may be asleep.
void CoreAgent::give_back(MailboxMemory& mailbox, Command& command) {
  mailbox.open.fetch_sub(1);
  mailbox.returned.fetch_add(1);
  command.state.store(Command::State::returned);
  mailbox.wake.fetch_add(1);
  wake_one(mailbox.wake, FutexOf::processes);
}

}  // namespace weft
