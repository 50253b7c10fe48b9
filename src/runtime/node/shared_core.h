// Connects the progress threads that share a core. They pass each other a baton, so that one of
// them polls at a time (engine/baton.h), or a single agent thread advances the collectives of all
// their ranks (engine/core_agent.h).
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/baton.h"
#include "engine/core_agent.h"
#include "engine/mailbox.h"
#include "engine/progress.h"

namespace weft {

// Returns the baton that this rank's progress thread shares with the other threads on its core. It
// is collective over `node`, a communicator of this node's ranks. local_rank: this rank there.
// core_of_thread: the core of each rank's thread; -1 if the thread stays on its rank's cores. If
// shared memory is not available, each rank gets a baton of its own, which no other thread passes
// on.
Baton baton_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread);

// This rank's part in the agent of its core.
struct AgentOfCore {
  static constexpr const char* kNoCoreIsShared =
      "no other rank's thread is on its core; --placement pack:K puts them together";

  std::unique_ptr<CoreAgent> agent;  // set in the lowest rank on its core
  std::string why_none;              // why this rank leaves nothing to an agent; empty if it does
};
// Lets the progress thread of the lowest rank on each core serve as the agent of all ranks whose
// threads are there, and starts it. Collective, with the arguments of baton_for(). sees_completions:
// Weft sees all completion calls, which complete the operations that an agent has carried out.
AgentOfCore agent_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread,
                      Progress& progress, bool sees_completions);

}  // namespace weft
