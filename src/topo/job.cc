// Determines from the environment variables of launchers whether a job runs on one node. The
// variables of mpiexec take precedence over Slurm's, because mpiexec may start a job on fewer nodes
// than the allocation has.
#include "topo/job.h"

#include <cstring>
#include <utility>

namespace weft {

bool on_one_node(const Variables& variables) {
  constexpr std::pair<const char*, const char*> kAllAndLocal[] = {
      {"PMI_SIZE", "MPI_LOCALNRANKS"},                          // Hydra sets these
      {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}};  // Open MPI's launcher sets these
  for (const auto& [all, local] : kAllAndLocal) {
    const char* ranks = variables(all);
    const char* local_ranks = variables(local);
    if (ranks && local_ranks) return std::strcmp(ranks, local_ranks) == 0;
  }
  // In a heterogeneous job of Slurm, the variables for the number of nodes describe only one
  // component.
  if (variables("SLURM_HET_SIZE")) return false;
  const char* nodes = variables("SLURM_STEP_NUM_NODES");
  if (!nodes) nodes = variables("SLURM_NNODES");
  return nodes && std::strcmp(nodes, "1") == 0;
}

}  // namespace weft
