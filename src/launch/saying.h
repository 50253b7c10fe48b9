// Prints messages of `weft run` and `weft advise` in the ranks of a job, once for all ranks.
#pragma once

#include <string>

namespace weft::launch {

// The ranks that a message concerns: all of the job, or those of one node that lacks something.
enum class Of { job, node };

// Prints the message to standard error on the first rank, with the number of ranks.
void say_once(const std::string& message);

// Prints the reason for which a rank ends, on one rank of each node; the first rank adds the number
// of ranks. A rank on a node without the first rank prints, too: it may run another program, and be
// the only one that ends.
void say_why_it_ends(const std::string& message, Of whom = Of::job);

// Prints the message once for the ranks that it concerns, and returns the exit status.
int refuse(const std::string& message, Of whom = Of::job);

}  // namespace weft::launch
