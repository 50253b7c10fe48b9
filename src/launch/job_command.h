// Finds the job's command line as a user would type it without Weft. The summary at the end of the
// job suggests a further Weft command, and builds it from this command line.
#pragma once

#include <string>
#include <vector>

namespace weft::launch {

// Returns the words of a command as one line for a shell, and leaves out each `weft run [OPTIONS]
// --` before a program. Returns "" if a `weft run` among the words has no `--` at the end of its
// options.
std::string typed_without_weft(const std::vector<std::string>& words);

// Stores the job's command line in an environment variable for the preloaded library, unless the
// variable is already set. Does nothing on ranks other than 0. started: the command that `weft run`
// starts. On a rank, the launcher's command line is taken from the ancestor process that is the
// launcher.
void tell_job_command(const std::vector<std::string>& started);

}  // namespace weft::launch
