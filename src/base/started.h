// The variables by which `weft run` tells the preloaded library what it has started.
#pragma once

namespace weft {

// The process that `weft run` has become.
inline constexpr const char* kStartedVariable = "WEFT_STARTED";
// LD_PRELOAD as it was, where a sanitizer's runtime was put there beside Weft.
inline constexpr const char* kPreloadBeforeVariable = "WEFT_PRELOAD_BEFORE";

// The job's command line without Weft, as a user would type it behind `weft try --`.
inline constexpr const char* kCommandVariable = "WEFT_STARTED_COMMAND";

// In MPI_Init: LD_PRELOAD as it was. Programs that this one starts have no use for Weft, and none
// for a sanitizer's runtime that is loaded on its account: either would be an error in programs
// that are built the other way.
void restore_preload();

}  // namespace weft
