// Names the environment variables by which `weft run` tells the preloaded library about the program
// that it started.
#pragma once

namespace weft {

// This variable holds the process ID of `weft run`. The program has the same ID, since `weft run`
// calls exec().
inline constexpr const char* kStartedVariable = "WEFT_STARTED";
// This variable holds the original LD_PRELOAD, if `weft run` preloads a sanitizer's runtime
// together with Weft.
inline constexpr const char* kPreloadBeforeVariable = "WEFT_PRELOAD_BEFORE";

// This variable holds the job's command line without Weft, as a user would type it after `weft try
// --`.
inline constexpr const char* kCommandVariable = "WEFT_STARTED_COMMAND";

// Restores the original LD_PRELOAD during MPI_Init, for programs that this program starts. These do
// not need Weft, and a sanitizer's runtime would make a program fail that was built without that
// sanitizer.
void restore_preload();

}  // namespace weft
