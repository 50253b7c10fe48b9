// LD_PRELOAD of a program that `weft run` starts.
#pragma once

#include <string>

namespace weft::launch {

// Puts Weft's `libraries` first, then the old value without another run's libraries. Runtimes of
// sanitizers come before all: those that the user has in front stay there, and `sanitizer`, which
// the program needs, is put there; "" if it needs none.
void set_preload(const std::string& libraries, const std::string& sanitizer);

}  // namespace weft::launch
