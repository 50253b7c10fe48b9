// CoreAgent: a thread that carries out the commands of all ranks on its core. It advances each
// command as far as possible, and sleeps when none can continue. It calls no MPI function.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/baton.h"
#include "engine/mailbox.h"
#include "engine/observer.h"
#include "engine/pace.h"
#include "engine/remote_program.h"
#include "engine/thread.h"

namespace weft {

class CoreAgent {
 public:
  // memory: keeps the mailboxes alive. own: the mailbox of this process's rank. mailboxes: the
  // mailboxes of all ranks on this core.
  CoreAgent(std::shared_ptr<void> memory, MailboxMemory* own,
            const std::vector<MailboxMemory*>& mailboxes, Observer& observer);
  ~CoreAgent() { stop(); }
  CoreAgent(const CoreAgent&) = delete;
  CoreAgent& operator=(const CoreAgent&) = delete;

  // Starts the thread. After success ranks may leave commands; after an error there is no thread.
  Result<bool> start();
  // Ends the thread and returns unfinished commands to their ranks. Is called in MPI_Finalize and
  // at process exit.
  void stop();

 private:
  struct Served {
    std::uint64_t number = 0;  // number of the command that `program` carries out; 0 for none
    RemoteProgram program;
  };
  struct Client {
    MailboxMemory* mailbox;
    std::vector<std::unique_ptr<Served>> served;  // indexed like the mailbox's commands
    bool ended = false;                           // the rank's process has ended
  };

  void main();
  void serve();
  void close();
  bool progress(Client& client);
  bool progress(Client& client, std::size_t number);
  RemoteProgram::State carry_out(Client& client, std::size_t number);
  void give_back(MailboxMemory& mailbox, Command& command);
  bool has_commands() const;

  std::shared_ptr<void> memory_;
  MailboxMemory* own_;
  std::vector<Client> clients_;
  Observer& observer_;
  Baton baton_;  // used by the agent's thread only
  Pace pace_;    // used by the agent's thread only
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace weft
