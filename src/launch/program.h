// What a program file says about itself: script, static, for which processor and C library, which
// MPI library it is linked to.
// Why read the ELF headers: LD_PRELOAD of the wrong family's library would be silently useless.
#pragma once

#include <string>

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
};

// Anything that is not an ELF file (a script) counts as preloadable, of unknown family.
Result<Program> look_at_program(const std::string& path);

}  // namespace weft::launch
