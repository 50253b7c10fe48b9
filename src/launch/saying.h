// Sentences of `weft run` and `weft advise` in the ranks of a job: one says them for all.
#pragma once

#include <string>

namespace weft::launch {

// Whom a sentence concerns: the ranks of the job, or those of a node, on which something is missing
// that other nodes may have.
enum class Of { job, node };

// To standard error, by the first rank, with the number of ranks.
void say_once(const std::string& message);

// By one rank of each node: the first rank for its own, with the number of ranks. A rank without it
// beside itself may run another program, and be the only one that ends.
void say_why_it_ends(const std::string& message, Of whom = Of::job);

// Says so, and returns the status.
int refuse(const std::string& message, Of whom = Of::job);

}  // namespace weft::launch
