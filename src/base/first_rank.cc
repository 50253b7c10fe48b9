// mpiexec's first: inside an allocation of Slurm's its ranks have a variable of srun's, too.
#include "base/first_rank.h"

#include <cstdlib>
#include <string_view>

namespace weft {

const char* launched_rank() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* const rank = std::getenv(name); rank && *rank) return rank;
  return nullptr;
}

bool is_first_rank() {
  const char* const rank = launched_rank();
  return !rank || std::string_view(rank) == "0";
}

}  // namespace weft
