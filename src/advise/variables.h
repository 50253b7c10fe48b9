// Names the environment variables by which `weft advise` passes its settings to the ranks.
#pragma once

namespace weft::advise {

// This variable holds the directory for the ranks' files and the job's file. Rank 0 writes the
// job's file in MPI_Finalize.
inline constexpr const char* kDirectoryVariable = "WEFT_ADVISE_DIRECTORY";
// This variable holds the share of the run time that watching buffers may take, in percent; 0 if no
// intervals are to be measured.
inline constexpr const char* kOverheadVariable = "WEFT_ADVISE_OVERHEAD";
// This variable holds the ID of the process that shows the report, if rank 0 is a child of that
// process.
inline constexpr const char* kParentVariable = "WEFT_ADVISE_PARENT";
// This variable is set on a rank if the rank itself has run `weft advise`. It must then not start
// another job.
inline constexpr const char* kInsideVariable = "WEFT_ADVISE_INSIDE";
// This variable is set by `weft check`. The buffers of operations in flight are then watched, and
// no intervals are measured.
inline constexpr const char* kCheckVariable = "WEFT_ADVISE_CHECK";
// This variable is set if the advisor watches the job. `weft run` then also preloads the advisor's
// library.
inline constexpr const char* kWatchedVariable = "WEFT_ADVISE_WATCHED";
// This variable is set on rank 0 if its command line was refused. All ranks then end in MPI_Init;
// otherwise the other ranks would wait there for rank 0.
inline constexpr const char* kRefusedVariable = "WEFT_ADVISE_REFUSED";
inline constexpr const char* kRefusedOption = "--refused";
// The name of an empty file in the directory for the ranks' files. It exists on a node if the
// process that shows the report runs there.
inline constexpr const char* kHere = "here";
// The name of the trace of Weft's threads, relative to the directory of a watched job.
inline constexpr const char* kThreadsFile = "/weft-threads";

}  // namespace weft::advise
