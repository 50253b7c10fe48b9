// Placement: chooses the core of each rank's progress thread on a node. Denis, Jaeger, Jeannot,
// Pérache, Taboada, IJHPCA 33(6), 2019, sections 4 and 5; JHPCN jh250041, Topic 1 (several progress
// threads on one core). The paper's equations give positions of cores, and assume that ranks are
// spread as by rank_cores(). Here a thread gets a core without a rank however the ranks are spread;
// if they are spread as assumed, it is the core that the equation gives. A core is identified by
// its first CPU.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "topo/topology.h"

namespace weft {

// NodeRanks: the cores to which the ranks of a node are bound. All ranks of the node compute equal
// values, so that they place threads consistently without communication.
struct NodeRanks {
  // First core to which each rank is bound, indexed by local rank; -1 if the rank is not bound.
  std::vector<int> core_of_rank;
  // All cores but the first of each rank that is bound to several; one list for all ranks.
  std::vector<int> further_cores;
};

// Computes the cores of a node's ranks from the CPUs on which each rank may run. A rank that may
// run on all cores counts as not bound.
NodeRanks ranks_on(const Topology& topology, const std::vector<std::vector<int>>& cpus_of_rank);

// Returns whether ranks of the node must share a CPU: more ranks may run on the same CPUs than
// there are. cpus_of_rank: the CPUs on which each rank may run.
bool share_cpus(const std::vector<std::vector<int>>& cpus_of_rank);

// Returns the cores without a rank, in the order of Topology::cores().
std::vector<int> free_cores(const Topology& topology, const NodeRanks& ranks);

// Returns the cores to which the paper binds `ranks` ranks (figure 1): consecutive ranks fill each
// NUMA node in proportion to its cores, with the free cores evenly among them. Returns an error if
// there are more ranks than cores.
Result<std::vector<int>> rank_cores(const Topology& topology, int ranks);

// Returns true if the policy can be carried out on this node. Returns an error if it names cores
// that the machine lacks or fewer cores than ranks, or if it puts more threads on the free cores
// than it allows for each. It is no error if there is no free core at all.
Result<bool> fits(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks);

// Returns a description of the node, such as "cores 0 to 7, ranks on 0 to 5, free 6 to 7".
std::string picture(const Topology& topology, const NodeRanks& ranks);

// Returns the core for the thread of `local_rank`; -1 if the thread stays where its rank runs
// (policy bind).
Result<int> place(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks,
                  int local_rank);

}  // namespace weft
