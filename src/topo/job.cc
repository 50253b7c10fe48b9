// Hydra first: inside an allocation of Slurm's it may start a job on fewer nodes.
#include "topo/job.h"

#include <cstring>

namespace weft {

bool on_one_node(const Variables& variables) {
  const char* ranks = variables("PMI_SIZE");
  const char* local_ranks = variables("MPI_LOCALNRANKS");
  if (ranks && local_ranks) return std::strcmp(ranks, local_ranks) == 0;
  if (variables("SLURM_HET_SIZE")) return false;  // the numbers of nodes are those of one part
  const char* nodes = variables("SLURM_STEP_NUM_NODES");
  if (!nodes) nodes = variables("SLURM_NNODES");
  return nodes && std::strcmp(nodes, "1") == 0;
}

}  // namespace weft
