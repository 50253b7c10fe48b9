// Connects progress threads that a placement puts on the same core: by a baton (engine/baton.h), or
// by an agent that carries out the operations of all their ranks (engine/core_agent.h).
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/baton.h"
#include "engine/core_agent.h"
#include "engine/mailbox.h"
#include "engine/observer.h"

namespace weft {

// Returns the baton that this rank's thread shares with the other threads on its core. Collective
// over the ranks of this node. core_of_thread: indexed by local rank; -1 if that rank's thread
// stays on the rank's cores. A rank that cannot share memory with the others gets a baton of its
// own, by which no other thread wakes it.
Baton baton_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread);

// The objects by which this rank uses the agent of its core: its mailbox and, on one rank, the
// agent itself.
struct AgentOfCore {
  std::optional<Mailbox> mailbox;    // nullopt if this rank has no agent
  std::unique_ptr<CoreAgent> agent;  // set in the lowest rank on its core
  bool shares_core = false;
  bool is_refused = false;       // the system has no thread for the agent
  const char* why_none() const;  // returns in words why there is no mailbox
};
// Returns this rank's part in the agent of its core, with the arguments of baton_for(). If two or
// more threads share a core, the agent is a further thread on that core.
AgentOfCore agent_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread,
                      Observer& observer);

}  // namespace weft
