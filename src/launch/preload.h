// Sets LD_PRELOAD for the program that `weft run` starts.
#pragma once

#include <string>

namespace weft::launch {

// Sets LD_PRELOAD to Weft's `libraries`, followed by the user's own entries. Entries that an outer
// `weft run` added are removed. Sanitizers' runtimes must come first: those that the user has put
// at the beginning stay there, and `sanitizer`, the runtime that the program needs, is added there
// ("" if it needs none).
void set_preload(const std::string& libraries, const std::string& sanitizer);

}  // namespace weft::launch
