// `weft run` starts one rank's program with Weft loaded, or a launcher whose ranks will have it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/launcher.h"
#include "launch/options.h"

namespace weft::launch {

// Runs `weft run` in place of this process. Returns only if nothing was started: 2 if the command
// was refused, 126 if it is not executable, 127 if it was not found. `self` is the absolute path of
// this program.
int run(const std::string& self, int argc, char** argv);

// These are the two halves of run(): the first starts a launcher with `prefix` before its programs,
// the second a rank's program.
int start_launcher(Launcher launcher, const std::vector<std::string>& command,
                   const std::vector<std::string>& prefix, bool verbose);
int start_program(const std::string& self, const RunOptions& options);

// Returns the options with which `weft advise` starts a program. mpi: the MPI family, "" if it is
// to be detected.
Result<RunOptions> watching_options(const std::string& mpi,
                                    const std::vector<std::string>& command);

// Replaces this process by `command`. Returns 126 or 127 after printing why that failed.
int become(const std::string& path, const char* const* command);

}  // namespace weft::launch
