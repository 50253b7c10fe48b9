// The job's command line as a user would type it without Weft, for the sentence of the summary that
// names the next command.
#pragma once

#include <string>
#include <vector>

namespace weft::launch {

// The words in one line for a shell, without `weft run [OPTIONS] --` in front of a program. Empty
// where `weft run` stands there without the `--` that ends its options.
std::string typed_without_weft(const std::vector<std::string>& words);

// Leaves it in the environment for the preloaded library, unless it is there already. started: what
// `weft run` starts. In a rank the launcher's words are those of a process above this one.
void tell_job_command(const std::vector<std::string>& started);

}  // namespace weft::launch
