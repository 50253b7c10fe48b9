// mpiexec first: inside an allocation of Slurm's it may start a job on fewer nodes.
#include "topo/job.h"

#include <cstring>
#include <utility>

namespace weft {

bool on_one_node(const Variables& variables) {
  constexpr std::pair<const char*, const char*> kAllAndLocal[] = {
      {"PMI_SIZE", "MPI_LOCALNRANKS"},                          // Hydra
      {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}};  // Open MPI
  for (const auto& [all, local] : kAllAndLocal) {
    const char* ranks = variables(all);
    const char* local_ranks = variables(local);
    if (ranks && local_ranks) return std::strcmp(ranks, local_ranks) == 0;
  }
  if (variables("SLURM_HET_SIZE")) return false;  // the numbers of nodes are those of one part
  const char* nodes = variables("SLURM_STEP_NUM_NODES");
  if (!nodes) nodes = variables("SLURM_NNODES");
  return nodes && std::strcmp(nodes, "1") == 0;
}

}  // namespace weft
