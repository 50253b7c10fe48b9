// Finds the job's command line as a user would type it without Weft. The job's summary builds the
// next command that it suggests from this one.
#pragma once

#include <string>
#include <vector>

namespace weft::launch {

// Returns the words of a command as one line for a shell, without `weft run [OPTIONS] --` before
// programs; "" if `weft run` lacks the `--` that ends its options.
std::string typed_without_weft(const std::vector<std::string>& words);

// Stores the job's command line in the environment for the preloaded library, unless it is there
// already. started: the command that `weft run` starts. In a rank, the launcher's command line is
// read from an ancestor process instead.
void tell_job_command(const std::vector<std::string>& started);

}  // namespace weft::launch
