// Reads from a program file whether it is a script or static, its processor and C library, and the
// MPI library to which it is linked. ELF headers are read, since preloading the library of another
// MPI family would silently have no effect.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "launch/options.h"

namespace weft::launch {

// Returns the file that execvp would start for `name`; empty if there is none.
std::string find_in_path(const std::string& name);

struct Program {
  bool preloadable = true;
  std::string why_not;  // reason for the user if the program is not preloadable
  Family family = Family::unknown;
  std::string mpi_library;  // name that revealed the family, such as libmpi.so.12
  // The runtime of a sanitizer that must be loaded before all other libraries, such as
  // libasan.so.8; empty if the program needs none.
  std::string sanitizer;
};

// Returns whether a library, given by name or path, is a sanitizer's runtime.
bool is_sanitizer(std::string_view library);

// Examines a program file; returns an error if it cannot be read. A file that is not ELF, such as a
// script, counts as preloadable, with unknown family.
Result<Program> look_at_program(const std::string& path);

}  // namespace weft::launch
