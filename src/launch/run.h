// `weft run` starts one rank's program with Weft loaded, or a launcher whose ranks will have it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/launcher.h"
#include "launch/options.h"

namespace weft::launch {

// Returns only if nothing was started: 2 refused, 126 not executable, 127 not found. `self` is the
// absolute path of this program.
int run(const std::string& self, int argc, char** argv);

// These are the two halves of run(): they start a launcher with `prefix` before its programs, or a
// rank's program.
int start_launcher(Launcher launcher, const std::vector<std::string>& command,
                   const std::vector<std::string>& prefix, bool verbose);
int start_program(const std::string& self, const RunOptions& options);

// Returns the options for a program under the advisor. mpi: "" if the family is to be detected.
Result<RunOptions> watching_options(const std::string& mpi,
                                    const std::vector<std::string>& command);

// Replaces this process by `command`. Returns 126 or 127 after printing why that failed.
int become(const std::string& path, const char* const* command);

}  // namespace weft::launch
