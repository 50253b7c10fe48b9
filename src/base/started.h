// The variable by which `weft run` tells the preloaded library which process it has become.
#pragma once

namespace weft {

inline constexpr const char* kStartedVariable = "WEFT_STARTED";

}  // namespace weft
