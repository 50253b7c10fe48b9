// The variables by which `weft run` tells the preloaded library about the program that it has
// started.
#pragma once

namespace weft {

// The variable with the process ID of `weft run`, which becomes that of the program.
inline constexpr const char* kStartedVariable = "WEFT_STARTED";
// The variable with the original LD_PRELOAD, if a sanitizer's runtime was added beside Weft.
inline constexpr const char* kPreloadBeforeVariable = "WEFT_PRELOAD_BEFORE";

// The variable with the job's command line without Weft, as a user would type it after `weft try
// --`.
inline constexpr const char* kCommandVariable = "WEFT_STARTED_COMMAND";

// Restores LD_PRELOAD in MPI_Init for programs that this one starts. These need neither Weft nor a
// sanitizer's runtime that was loaded for it; either would be an error in programs built the other
// way.
void restore_preload();

}  // namespace weft
