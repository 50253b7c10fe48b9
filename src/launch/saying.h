// Prints messages of `weft run` and `weft advise`. On the ranks of a job a message is printed once,
// not by every rank.
#pragma once

#include <string>

namespace weft::launch {

// Says which ranks a message concerns. job: all ranks of the job. node: the ranks of one node.
enum class Of { job, node };

// Prints the message to standard error if this is rank 0, with the number of ranks.
void say_once(const std::string& message);

// Prints why this rank ends, on one rank of each node. Rank 0 adds the number of ranks. Other nodes
// print the message, too, since their ranks may run another program and be the only ones that end.
void say_why_it_ends(const std::string& message, Of whom = Of::job);

// Prints why this rank ends, as say_why_it_ends() does, and returns the exit status 2.
int refuse(const std::string& message, Of whom = Of::job);

}  // namespace weft::launch
