// Runs `weft advise`. On a rank, it starts the rank's program with the advisor's library preloaded.
// For a command with a launcher such as mpiexec, and for all that the user sees, it runs Python.
#pragma once

#include <optional>
#include <string>

namespace weft::launch {

// Carries out `weft advise` in place of this process. Returns only if nothing was started: an exit
// status if that is an error, or nullopt if Python must continue.
std::optional<int> advise(const std::string& self, int argc, char** argv);

}  // namespace weft::launch
