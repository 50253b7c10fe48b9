// Weft's definitions of functions that a program looks up by dlsym() rather than being linked to
// them.
#pragma once

namespace weft {

// Returns whether Weft defines the symbol: a wrapped MPI call, or dlsym() or dlopen().
bool is_shown(const char* symbol);
// Returns the first definition of a wrapped call, dlsym() or dlopen() in the search order of the
// program's own objects. Another tool may come before Weft.
void* first_definition(const char* symbol);

}  // namespace weft
