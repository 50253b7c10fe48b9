// Reads the variables of several job launchers. The variables of mpiexec come first: ranks that
// mpiexec starts inside a Slurm allocation also have Slurm's variable, which does not hold their
// rank.
#include "base/first_rank.h"

#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace weft {
namespace {

const char* first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* const value = std::getenv(name); value && *value) return value;
  return nullptr;
}

}  // namespace

const char* launched_rank() {
  return first_of({"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"});
}

int launched_ranks() {
  // SLURM_NTASKS is not read, because Slurm also sets it in a batch script, which is not a rank.
  const char* const ranks = first_of({"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"});
  return ranks ? std::atoi(ranks) : 0;
}

bool is_first_rank() {
  const char* const rank = launched_rank();
  return !rank || std::string_view(rank) == "0";
}

}  // namespace weft
