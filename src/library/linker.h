// Finds the dynamic linker's own dlsym() and dlopen(). Weft's library exports functions of the same
// names (library/looked_up.cc), which Weft itself must not call.
#pragma once

#include <dlfcn.h>
#include <link.h>

namespace weft {

struct Linker {
  void* (*dlsym)(void* handle, const char* symbol);
  void* (*dlopen)(const char* file, int mode);
};

// Returns the dlsym() and dlopen() that are defined next after Weft's library in the search order.
// They are the C library's, or those of another preloaded tool.
Linker linker();

// Returns the loaded object that contains the address; nullptr if none does. The members l_next and
// l_prev of the result lead to the objects after and before it in the search order.
const link_map* object_of(const void* address);

}  // namespace weft
