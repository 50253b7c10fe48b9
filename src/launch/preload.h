// LD_PRELOAD of a program that `weft run` starts.
#pragma once

#include <string>

namespace weft::launch {

// Weft's `libraries` first, then what was there, without another run's of Weft's libraries. A
// runtime of a sanitizer comes before all: those that the user has in front stay there, and
// `sanitizer`, which the program needs so, is put there. "": it needs none.
void set_preload(const std::string& libraries, const std::string& sanitizer);

}  // namespace weft::launch
