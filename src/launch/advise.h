// `weft advise`: in front of a rank's program, the program with the advisor's library loaded; in
// front of a launcher, or for what the user sees, the part in Python.
#pragma once

#include <optional>
#include <string>

namespace weft::launch {

// Returns only if nothing was started: a status as run() does, or nothing if Python is to do it.
std::optional<int> advise(const std::string& self, int argc, char** argv);

}  // namespace weft::launch
