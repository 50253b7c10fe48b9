// Connects progress threads that a placement puts on the same core, by an agent that carries out
// the operations of all their ranks (engine/core_agent.h).
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/core_agent.h"
#include "engine/mailbox.h"
#include "engine/progress.h"

namespace weft {

// This rank's part in the agent of its core.
struct AgentOfCore {
  static constexpr const char* kNoCoreIsShared =
      "no other rank's thread is on its core; --placement pack:K puts them together";

  std::unique_ptr<CoreAgent> agent;  // set in the lowest rank on its core
  std::string why_none;              // why this rank leaves nothing to an agent; empty if it does
};
// Lets the progress thread of the lowest rank on each core serve as the agent of all ranks whose
// threads are there, and starts it. Collective over the ranks of this node. core_of_thread: indexed
// by local rank; -1 if that rank's thread stays on the rank's cores. sees_completions: Weft sees
// all completion calls, which complete the operations that an agent has carried out.
AgentOfCore agent_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread,
                      Progress& progress, bool sees_completions);

}  // namespace weft
