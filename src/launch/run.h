// `weft run`: starts one rank's program with Weft loaded, or a launcher whose ranks will have it.
#pragma once

#include <string>

namespace weft::launch {

// Only returns when nothing was started: 2 refused, 126 not executable, 127 not found.
// `self` is the absolute path of this program.
int run(const std::string& self, int argc, char** argv);

// Becomes `command`; returns 126 or 127 after saying why that failed.
int become(const std::string& path, const char* const* command);

}  // namespace weft::launch
