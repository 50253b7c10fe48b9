// Messages of `weft run` and `weft advise` in the ranks of a job: one rank prints them for all.
#pragma once

#include <string>

namespace weft::launch {

// The ranks that a message concerns: all of the job, or those of a node that lacks something which
// other nodes may have.
enum class Of { job, node };

// Prints to standard error, on the first rank, with the number of ranks.
void say_once(const std::string& message);

// Prints on one rank of each node; on the first rank for its own node, with the number of ranks. A
// rank whose node has no first rank may run another program, and be the only one that ends.
void say_why_it_ends(const std::string& message, Of whom = Of::job);

// Prints the message and returns the status.
int refuse(const std::string& message, Of whom = Of::job);

}  // namespace weft::launch
