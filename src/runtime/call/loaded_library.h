// Looks up functions of libraries that the process has loaded, and loads none.
#pragma once

#include <dlfcn.h>

namespace weft {

// Returns the library whose file name begins with `name`, if the process has loaded one; otherwise
// nullptr. dlopen() alone would search the file system.
void* loaded_library(const char* name);

// Sets `function` to the library's function of this name. Returns false if there is none.
template <class Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace weft
