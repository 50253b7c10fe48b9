// Builds the texts by which stored plans tell jobs apart: the program, and those of the user's
// settings that change which engine and algorithm are fastest.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace weft {

// Returns the program's name, such as "app"; for Python together with its script or module:
// "python3 app.py".
std::string program_words(const std::vector<std::string>& command_line);

// Returns the settings that differ from the defaults, such as ", placement numa, backoff spin"; ""
// if none does.
std::string setting_words(const Config& config);

}  // namespace weft
