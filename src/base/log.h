// Writes a sentence for the user to standard error, with "weft: " in front.
#pragma once

#include <string>

namespace weft {

void say(const std::string& sentence);

}  // namespace weft
