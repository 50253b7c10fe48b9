// The variables by which `weft advise` tells the ranks what to do.
#pragma once

namespace weft::advise {

// A directory for the ranks' files, and for the job's that rank 0 writes in MPI_Finalize.
inline constexpr const char* kDirectoryVariable = "WEFT_ADVISE_DIRECTORY";
// The part of the run time that guards may take, in per cent; 0: no windows.
inline constexpr const char* kOverheadVariable = "WEFT_ADVISE_OVERHEAD";
// The process that shows the report, where the first rank is its child.
inline constexpr const char* kParentVariable = "WEFT_ADVISE_PARENT";
// A rank of a job has asked for the advice: it starts no other job.
inline constexpr const char* kInsideVariable = "WEFT_ADVISE_INSIDE";
// Set by `weft check`: buffers in flight are guarded, and no windows are measured.
inline constexpr const char* kCheckVariable = "WEFT_ADVISE_CHECK";
// Set where the advisor watches: `weft run` then loads its library, too.
inline constexpr const char* kWatchedVariable = "WEFT_ADVISE_WATCHED";
// Set in the first rank where its command line was refused: in MPI_Init all ranks end, since the
// others know nothing of it and would wait.
inline constexpr const char* kRefusedVariable = "WEFT_ADVISE_REFUSED";
inline constexpr const char* kRefusedOption = "--refused";
// In the directory, where it is on the node of the process that shows the report.
inline constexpr const char* kHere = "here";
// The trace of such a job, relative to the directory, for the rows of Weft's threads.
inline constexpr const char* kThreadsFile = "/weft-threads";

}  // namespace weft::advise
