// Connects progress threads that a placement puts on one core: by a baton (engine/baton.h), or by
// an agent that carries out the operations of all (engine/core_agent.h).
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

// Collective over the ranks of this node. core_of_thread: by local rank; -1 to stay beside the
// rank. A rank that cannot share memory with the others has a baton of its own, and is not woken.
Baton baton_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread);

// This rank's part in an agent.
struct AgentOfCore {
  std::optional<Mailbox> mailbox;    // none: there is no agent for it
  std::unique_ptr<CoreAgent> agent;  // in the lowest rank on its core
  bool shares_core = false;
  bool is_refused = false;       // there would be an agent, for which the system has no thread
  const char* why_none() const;  // in words; without a mailbox
};
// Takes the arguments of baton_for(). If two threads or more share a core, the agent is a thread of
// its own, placed like theirs.
AgentOfCore agent_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread,
                      Observer& observer);

}  // namespace weft
