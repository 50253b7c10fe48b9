// Recognises launchers (mpiexec, mpirun, srun) on the command line and from inside a rank, and
// inserts `weft run` before the programs that they start. LD_PRELOAD must be set only in the ranks.
// In the launcher's own environment it would load Weft into the launcher, and into every process
// that the launcher starts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/options.h"

namespace weft::launch {

// Lists the known launchers. hydra: of MPICH and Intel MPI. slurm: srun. any: an mpiexec whose
// origin is unknown.
enum class Launcher { none, hydra, openmpi, slurm, any };
const char* launcher_name(Launcher launcher);

// Returns which launcher the command name is; Launcher::none if it is an ordinary program.
Launcher launcher_of_command(const std::string& command);

// Returns the launcher that started this process as a rank, according to the environment;
// Launcher::none if this process is not a rank.
Launcher launcher_of_environment();

// Returns the command (a launcher and its arguments) with the words of `prefix` inserted before
// each program that it starts. Returns it unchanged if it starts no program, as in `mpiexec
// --version`.
Result<std::vector<std::string>> insert_before_programs(Launcher launcher,
                                                        const std::vector<std::string>& command,
                                                        const std::vector<std::string>& prefix);

// Returns how many of the words after `argument`, an option of the launcher, belong to that option;
// -1 if the option is unknown. next: the word that follows the option.
int arguments_of_option(Launcher launcher, const std::string& argument, const std::string& next);

}  // namespace weft::launch
