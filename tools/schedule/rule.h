// The static rule of engine auto as tables: asked of the selector, so that pages cannot differ from
// it.
#pragma once

#include <string>

namespace weft {

// Markdown: engines by MPI library and size, and algorithms by size, of all collectives between so
// many ranks over several nodes.
std::string rule_tables(int ranks, int ranks_per_node);

}  // namespace weft
