// The dynamic linker's own calls. Weft's library shows the program calls of the same names
// (interpose/looked_up.cc), so Weft itself calls these.
#pragma once

#include <dlfcn.h>
#include <link.h>

namespace weft {

struct Linker {
  void* (*dlsym)(void* handle, const char* symbol);
  void* (*dlopen)(const char* file, int mode);
};

// The next definitions behind this library, which may be another tool's.
Linker linker();

// The loaded object that holds an address, or nullptr. They are linked in the order in which the
// program's own are searched.
const link_map* object_of(const void* address);

}  // namespace weft
