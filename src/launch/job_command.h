// The job's command line as a user would type it without Weft, for the sentence of the summary that
// names the next command.
#pragma once

#include <string>
#include <vector>

namespace weft::launch {

// Returns the words in one line for a shell, without `weft run [OPTIONS] --` before a program;
// empty if `weft run` lacks the `--` that ends its options.
std::string typed_without_weft(const std::vector<std::string>& words);

// Stores it in the environment for the preloaded library, unless it is there already. started: the
// command that `weft run` starts. In a rank, an ancestor process has the launcher's words.
void tell_job_command(const std::vector<std::string>& started);

}  // namespace weft::launch
