// Implements `weft run`, which starts a rank's program with Weft preloaded, or a launcher whose
// ranks get Weft preloaded.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/launcher.h"
#include "launch/options.h"

namespace weft::launch {

// Carries out `weft run` in place of this process. Returns only if nothing was started: 2 if the
// command was refused, 126 if the program is not executable, 127 if it was not found. self: the
// absolute path of this program.
int run(const std::string& self, int argc, char** argv);

// The two halves of run(). start_launcher() starts a launcher with the words of `prefix` before
// each of its programs; start_program() starts a rank's program. They return an exit status if that
// fails.
int start_launcher(Launcher launcher, const std::vector<std::string>& command,
                   const std::vector<std::string>& prefix, bool verbose);
int start_program(const std::string& self, const RunOptions& options);

// Returns the options of `weft run` with which `weft advise` starts a program. mpi: the MPI family;
// "" if it is to be detected from the program.
Result<RunOptions> watching_options(const std::string& mpi,
                                    const std::vector<std::string>& command);

// Replaces this process by the program `path` with the arguments `command`. If that fails, prints
// why and returns 126 (not executable) or 127 (not found).
int become(const std::string& path, const char* const* command);

}  // namespace weft::launch
