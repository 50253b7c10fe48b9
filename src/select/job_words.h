// Builds the part of a plan's key that identifies a job: its program, and the user's settings that
// change which variant is the fastest.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace weft {

// Returns the program's name, such as "app"; for Python also its script or module: "python3
// app.py".
std::string program_words(const std::vector<std::string>& command_line);

// Returns for instance ", placement numa, backoff spin"; "" if all settings are the defaults.
std::string setting_words(const Config& config);

}  // namespace weft
