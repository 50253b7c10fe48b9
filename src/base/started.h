// The variables by which `weft run` tells the preloaded library what it has started.
#pragma once

namespace weft {

// The process that `weft run` has become.
inline constexpr const char* kStartedVariable = "WEFT_STARTED";
// The original LD_PRELOAD, if a sanitizer's runtime was added beside Weft.
inline constexpr const char* kPreloadBeforeVariable = "WEFT_PRELOAD_BEFORE";

// The job's command line without Weft, as a user would type it behind `weft try --`.
inline constexpr const char* kCommandVariable = "WEFT_STARTED_COMMAND";

// Is called in MPI_Init: restores LD_PRELOAD. Programs that this one starts need neither Weft nor a
// sanitizer's runtime that was loaded for it: either would be an error in programs built the other
// way.
void restore_preload();

}  // namespace weft
