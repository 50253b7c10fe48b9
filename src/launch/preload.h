// Sets LD_PRELOAD for a program that `weft run` starts.
#pragma once

#include <string>

namespace weft::launch {

// Puts Weft's `libraries` before the old value, from which another run's libraries are removed.
// Sanitizers' runtimes precede all others: those that the user has put first stay there, and
// `sanitizer`, which the program needs, is added ("" if it needs none).
void set_preload(const std::string& libraries, const std::string& sanitizer);

}  // namespace weft::launch
