// Connects the progress threads that share a core. They pass each other a baton, so that one of
// them polls at a time (engine/baton.h), or a single agent thread advances the collectives of all
// their ranks (engine/core_agent.h).
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

// Returns the baton that this rank's progress thread shares with the other threads on its core. It
// is collective over `node`, a communicator of this node's ranks. local_rank: this rank there.
// core_of_thread: the core of each rank's thread; -1 if the thread stays on its rank's cores. If
// shared memory is not available, each rank gets a baton of its own, which no other thread passes
// on.
Baton baton_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread);

// Holds what a rank needs to use the agent of its core, a thread that carries out collectives of
// all ranks on that core: its mailbox and, on one of the ranks, the agent itself.
struct AgentOfCore {
  std::optional<Mailbox> mailbox;    // nullopt if this rank has no agent
  std::unique_ptr<CoreAgent> agent;  // only on the lowest rank of the core
  bool shares_core = false;
  bool is_refused = false;       // whether the system has refused a thread for the agent
  const char* why_none() const;  // returns as words why there is no mailbox
};
// Starts the agent of this rank's core, if two or more progress threads share the core. The agent
// is a further thread on this core. It is collective, with the same arguments as baton_for().
AgentOfCore agent_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread,
                      Observer& observer);

}  // namespace weft
