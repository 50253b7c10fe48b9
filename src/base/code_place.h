// Finds the loaded file that contains a code address.
#pragma once

#include <cstdint>

namespace weft {

// Describes a code address: the loaded file that contains it ("" for the executable itself, "?" if
// none does), and the address as an offset in that file.
struct Place {
  char file[256];
  std::uint64_t offset;
};
Place place_of(std::uintptr_t address);

// Names the language binding to which a loaded file belongs, judged by the file's path. fortran:
// the MPI library, its Fortran binding, or Weft. python: mpi4py. none: the application.
enum class Binding : unsigned char { none, fortran, python };
Binding binding_of(const char* path);

}  // namespace weft
