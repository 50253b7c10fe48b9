// The variables by which `weft run` tells the preloaded library what it has started.
#pragma once

namespace weft {

// The process that `weft run` has become.
inline constexpr const char* kStartedVariable = "WEFT_STARTED";
// LD_PRELOAD as it was, where a sanitizer's runtime was put there beside Weft.
inline constexpr const char* kPreloadBeforeVariable = "WEFT_PRELOAD_BEFORE";

// The job's command line without Weft, as a user would type it behind `weft try --`.
inline constexpr const char* kCommandVariable = "WEFT_STARTED_COMMAND";

}  // namespace weft
