// What a job is known by again in the file of plans: its program, and the settings of the user's
// that change which way is the best.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace weft {

// "app"; of a program that Python interprets also its script, or else its module: "python3 app.py".
std::string program_words(const std::vector<std::string>& command_line);

// ", placement numa, backoff spin"; "" where all is as usual.
std::string setting_words(const Config& config);

}  // namespace weft
