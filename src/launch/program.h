// What a program file says about itself: script, static, for which processor and C library, which
// MPI library it is linked to.
// Why read the ELF headers: LD_PRELOAD of the wrong family's library would be silently useless.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "launch/options.h"

namespace weft::launch {

// The file that execvp would start for `name`; empty if there is none.
std::string find_in_path(const std::string& name);

struct Program {
  bool preloadable = true;
  std::string why_not;  // set when not preloadable, for the user
  Family family = Family::unknown;
  std::string mpi_library;  // the name the family was seen in, such as libmpi.so.12
  // The runtime of a sanitizer that has to be loaded before all other libraries, such as
  // libasan.so.8; empty: the program needs none.
  std::string sanitizer;
};

// Whether a library is such a runtime, by its name or path.
bool is_sanitizer(std::string_view library);

// Anything that is not an ELF file (a script) counts as preloadable, of unknown family.
Result<Program> look_at_program(const std::string& path);

}  // namespace weft::launch
