// Declares functions about Weft's own dlsym() and dlopen(). These serve programs that look up MPI
// calls at run time instead of being linked to them.
#pragma once

namespace weft {

// Returns whether Weft's library exports the symbol: a wrapped MPI call, dlsym() or dlopen().
bool is_shown(const char* symbol);
// Returns the definition of a wrapped MPI call, dlsym() or dlopen() that comes first in the search
// order. This may be the definition of another preloaded tool.
void* first_definition(const char* symbol);

}  // namespace weft
