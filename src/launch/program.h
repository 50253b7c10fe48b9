// Reads from a program file whether it is a script or static, its processor and C library, and the
// MPI library to which it is linked. It reads ELF headers, since preloading the library of another
// MPI family would have no effect and give no message.
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
  std::string why_not;  // set when not preloadable, for the user
  Family family = Family::unknown;
  std::string mpi_library;  // the name the family was seen in, such as libmpi.so.12
  // The runtime of a sanitizer that must be loaded before all other libraries, such as
  // libasan.so.8; empty if the program needs none.
  std::string sanitizer;
};

// Returns whether a library is such a runtime, by its name or path.
bool is_sanitizer(std::string_view library);

// A file that is not ELF, such as a script, counts as preloadable, of unknown family.
Result<Program> look_at_program(const std::string& path);

}  // namespace weft::launch
