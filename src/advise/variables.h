// The environment variables by which `weft advise` passes its settings to the ranks.
#pragma once

namespace weft::advise {

// The directory for the ranks' files and for the job's file, which rank 0 writes in MPI_Finalize.
inline constexpr const char* kDirectoryVariable = "WEFT_ADVISE_DIRECTORY";
// The share of the run time that guards may take, in per cent; 0: no intervals are measured.
inline constexpr const char* kOverheadVariable = "WEFT_ADVISE_OVERHEAD";
// The process that shows the report, if the first rank is its child.
inline constexpr const char* kParentVariable = "WEFT_ADVISE_PARENT";
// This variable is set if a rank of a job has itself run `weft advise`, which must not start
// another job.
inline constexpr const char* kInsideVariable = "WEFT_ADVISE_INSIDE";
// `weft check` sets this variable: buffers in flight are guarded, and no intervals are measured.
inline constexpr const char* kCheckVariable = "WEFT_ADVISE_CHECK";
// This variable is set if the advisor watches the job: `weft run` then loads the advisor's library,
// too.
inline constexpr const char* kWatchedVariable = "WEFT_ADVISE_WATCHED";
// This variable is set in the first rank if its command line was refused. All ranks then end in
// MPI_Init, since the others would wait for the first.
inline constexpr const char* kRefusedVariable = "WEFT_ADVISE_REFUSED";
inline constexpr const char* kRefusedOption = "--refused";
// A file in the directory, made if the process that shows the report runs on the same node.
inline constexpr const char* kHere = "here";
// The trace of Weft's threads in a watched job, relative to the directory.
inline constexpr const char* kThreadsFile = "/weft-threads";

}  // namespace weft::advise
