// Sentences for the user, to standard error, each prefixed with "weft:".
#pragma once

#include <string>

namespace weft {

void say(const std::string& sentence);

}  // namespace weft
