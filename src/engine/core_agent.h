// CoreAgent: the thread that carries out the commands of all ranks on its core, each as far as it
// can go, and sleeps when none can continue. It calls no MPI.
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
  // memory: keeps the mailboxes alive. own: that of this process's rank; mailboxes: those of all
  // ranks on its core.
  CoreAgent(std::shared_ptr<void> memory, MailboxMemory* own,
            const std::vector<MailboxMemory*>& mailboxes, Observer& observer);
  ~CoreAgent() { stop(); }
  CoreAgent(const CoreAgent&) = delete;
  CoreAgent& operator=(const CoreAgent&) = delete;

  // Starts the thread. On success commands may be left; after an error there is no thread.
  Result<bool> start();
  // Ends the thread and returns unfinished commands to their ranks. Is called in finalize and at
  // exit.
  void stop();

 private:
  struct Served {
    std::uint64_t number = 0;  // of the command; 0: none
    RemoteProgram program;
  };
  struct Client {
    MailboxMemory* mailbox;
    std::vector<std::unique_ptr<Served>> served;  // by command
    bool ended = false;                           // its process has
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
  Baton baton_;  // of its thread
  Pace pace_;    // the same
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace weft
