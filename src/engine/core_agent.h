// CoreAgent: carries out the commands of all ranks on its core. It advances each command as far as
// possible, and calls no MPI function. The progress thread of its process serves as the agent: the
// same thread sends the messages of its own rank, which may lead its node in collectives between
// nodes. So all ranks on a core have one thread for their communication.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/mailbox.h"
#include "engine/remote_program.h"

namespace weft {

class CoreAgent {
 public:
  // memory: keeps the mailboxes alive. own: the mailbox of this process's rank. mailboxes: the
  // mailboxes of all ranks on this core, including `own`. ranks_of_node: the number of ranks on
  // this core and others.
  CoreAgent(std::shared_ptr<void> memory, MailboxMemory* own,
            const std::vector<MailboxMemory*>& mailboxes, int ranks_of_node);
  CoreAgent(const CoreAgent&) = delete;
  CoreAgent& operator=(const CoreAgent&) = delete;

  // The following functions are for the thread that serves. begin(): from then on ranks may leave
  // commands. close(): returns unfinished commands to their ranks, and must follow begin() in the
  // same thread.
  void begin();
  void close();
  // Advances all commands as far as possible. Returns true if an instruction has been carried out.
  bool serve();

  // Returns whether all ranks of the node share this core; for any thread.
  bool serves_all_of_node() const { return serves_all_of_node_; }
  // Returns whether some rank has left a command; for any thread.
  bool has_commands() const;
  // Waits until the thread that serves has called begin().
  void wait_until_it_serves() const;
  // wake() returns the futex that wakes the agent's thread. asleep() returns the variable in which
  // that thread says whether it sleeps.
  std::atomic<std::uint32_t>& wake() const { return own_->wake; }
  std::atomic<Asleep>& asleep() const { return own_->asleep; }

 private:
  struct Served {
    // Number of the command whose compiled schedule this is; 0 if there is none.
    std::uint64_t number = 0;
    RemoteProgram program;
  };
  struct Client {
    MailboxMemory* mailbox;
    std::vector<std::unique_ptr<Served>> served;  // indexed like the mailbox's commands
    std::atomic<bool> ended{false};               // the rank's process has ended

    explicit Client(MailboxMemory* of) : mailbox(of), served(MailboxMemory::kCommands) {}
  };

  bool progress(Client& client);
  bool progress(Client& client, std::size_t number);
  RemoteProgram::State carry_out(Client& client, std::size_t number);
  void give_back(MailboxMemory& mailbox, Command& command);

  std::shared_ptr<void> memory_;
  MailboxMemory* own_;
  const bool serves_all_of_node_;
  std::deque<Client> clients_;
};

}  // namespace weft
