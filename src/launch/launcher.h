// Launchers (mpiexec, mpirun, srun): recognising them, on the command line and from inside a rank,
// and putting `weft run` in front of the programs they start.
// Why: LD_PRELOAD belongs into the ranks. In the launcher it would load MPI's collectives into a
// program that has none, and stay with every process that it starts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/options.h"

namespace weft::launch {

enum class Launcher { none, hydra, openmpi, slurm, any };  // any: mpiexec of unknown origin
const char* launcher_name(Launcher launcher);

// Returns the launcher that `command` is; none if it is an ordinary program.
Launcher launcher_of_command(const std::string& command);

// Returns the launcher that started this process, as its environment shows.
Launcher launcher_of_environment();

// `command` (a launcher and its arguments) with `prefix` in front of each program that it starts.
// Unchanged if it starts none (mpiexec --version).
Result<std::vector<std::string>> insert_before_programs(Launcher launcher,
                                                        const std::vector<std::string>& command,
                                                        const std::vector<std::string>& prefix);

// Returns how many further arguments belong to the launcher's option `argument` if `next` follows
// it; -1 if the option is not in the tables.
int arguments_of_option(Launcher launcher, const std::string& argument, const std::string& next);

}  // namespace weft::launch
