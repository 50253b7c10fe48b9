// Writes a sentence for the user to standard error, prefixed with "weft: ".
#pragma once

#include <string>

namespace weft {

void say(const std::string& sentence);

}  // namespace weft
