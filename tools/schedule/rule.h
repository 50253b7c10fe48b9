// Prints the static rule of engine auto as tables. It asks the selector, so that pages cannot
// differ from the code.
#pragma once

#include <string>

namespace weft {

// Returns Markdown: engines by MPI library and size, and algorithms by size, of all collectives
// between `ranks` ranks over several nodes.
std::string rule_tables(int ranks, int ranks_per_node);

}  // namespace weft
