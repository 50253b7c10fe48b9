// Finds the dynamic linker's own dlsym and dlopen. Weft's library exports functions of the same
// names (library/looked_up.cc), so Weft itself must call these.
#pragma once

#include <dlfcn.h>
#include <link.h>

namespace weft {

struct Linker {
  void* (*dlsym)(void* handle, const char* symbol);
  void* (*dlopen)(const char* file, int mode);
};

// Returns dlsym and dlopen as the objects loaded after this library define them; they may belong to
// another tool.
Linker linker();

// Returns the loaded object that holds an address; nullptr if there is none. Objects are linked in
// search order.
const link_map* object_of(const void* address);

}  // namespace weft
