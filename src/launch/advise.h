// Runs `weft advise`. Before a rank's program, it starts the program with the advisor's library
// preloaded. Before a launcher, or for the parts that the user sees, it runs Python.
#pragma once

#include <optional>
#include <string>

namespace weft::launch {

// Runs the command in place of this process. Returns only if nothing was started: an exit status as
// from run(), or nothing if Python is to continue.
std::optional<int> advise(const std::string& self, int argc, char** argv);

}  // namespace weft::launch
