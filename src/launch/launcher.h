// Recognises launchers (mpiexec, mpirun, srun) on the command line and from inside a rank, and
// inserts `weft run` before the programs that they start. LD_PRELOAD must be set in the ranks only:
// in the launcher it would load MPI collectives into a program that has none, and every process
// that it starts would inherit the setting.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/options.h"

namespace weft::launch {

// The launchers that are known; any: an mpiexec of unknown origin.
enum class Launcher { none, hydra, openmpi, slurm, any };
const char* launcher_name(Launcher launcher);

// Returns which launcher `command` is; Launcher::none if it is an ordinary program.
Launcher launcher_of_command(const std::string& command);

// Returns the launcher that started this process, according to its environment.
Launcher launcher_of_environment();

// Returns `command` (a launcher and its arguments) with `prefix` inserted before each program that
// it starts; unchanged if it starts none (mpiexec --version).
Result<std::vector<std::string>> insert_before_programs(Launcher launcher,
                                                        const std::vector<std::string>& command,
                                                        const std::vector<std::string>& prefix);

// Returns how many further arguments belong to the launcher's option `argument` if `next` follows
// it; -1 if the option is not in the tables.
int arguments_of_option(Launcher launcher, const std::string& argument, const std::string& next);

}  // namespace weft::launch
