// Weft's definitions of calls that a program may look up, rather than be linked to.
#pragma once

namespace weft::interpose {

// Returns whether the symbol is a wrapped call, or a call of the dynamic linker's that Weft shows.
bool is_shown(const char* symbol);
// Finds a shown symbol by the order in which the program's own objects are searched. Another
// tool may come before Weft.
void* first_definition(const char* symbol);

}  // namespace weft::interpose
