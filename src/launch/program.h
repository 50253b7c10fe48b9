// Examines a program file: whether it is a script or statically linked, its processor and C
// library, and the MPI library to which it is linked. All this is read from the ELF file.
// Preloading the library for another MPI family would silently have no effect.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "launch/options.h"

namespace weft::launch {

// Returns the file that execvp() would start for this name; "" if there is none.
std::string find_in_path(const std::string& name);

struct Program {
  bool preloadable = true;
  // The message that says why Weft cannot be preloaded into the program; empty if it can.
  std::string why_not;
  Family family = Family::unknown;
  std::string mpi_library;  // the library whose name revealed the family, such as libmpi.so.12
  // The sanitizer's runtime, such as libasan.so.8, that must be loaded before all other libraries;
  // empty if the program uses no sanitizer.
  std::string sanitizer;
};

// Returns whether a library, given by its name or path, is the runtime of a sanitizer.
bool is_sanitizer(std::string_view library);

// Examines a program file. Returns an error if the file cannot be opened. A file that is not ELF,
// such as a script, counts as one into which Weft can be preloaded, with unknown MPI family.
Result<Program> look_at_program(const std::string& path);

}  // namespace weft::launch
