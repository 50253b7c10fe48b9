// `weft run`: starts one rank's program with Weft loaded, or a launcher whose ranks will have it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/launcher.h"
#include "launch/options.h"

namespace weft::launch {

// Only returns when nothing was started: 2 refused, 126 not executable, 127 not found.
// `self` is the absolute path of this program.
int run(const std::string& self, int argc, char** argv);

// The two halves of run(): a launcher with `prefix` in front of its programs; a rank's program.
int start_launcher(Launcher launcher, const std::vector<std::string>& command,
                   const std::vector<std::string>& prefix, bool verbose);
int start_program(const std::string& self, const RunOptions& options);

// For a program under the advisor. mpi: "" if the family is to be found out.
Result<RunOptions> watching_options(const std::string& mpi,
                                    const std::vector<std::string>& command);

// Becomes `command`; returns 126 or 127 after saying why that failed.
int become(const std::string& path, const char* const* command);

}  // namespace weft::launch
