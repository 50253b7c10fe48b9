// The variables by which `weft run` tells the preloaded library what it has started.
#pragma once

namespace weft {

// The process that `weft run` has become.
inline constexpr const char* kStartedVariable = "WEFT_STARTED";

// The job's command line without Weft, as a user would type it behind `weft try --`.
inline constexpr const char* kCommandVariable = "WEFT_COMMAND";

}  // namespace weft
