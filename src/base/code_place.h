// Maps code addresses to the files of this process.
#pragma once

#include <cstdint>

namespace weft {

// The loaded file that contains an address ("" for the program itself, "?" if there is none), and
// the address as an offset in that file.
struct Place {
  char file[256];
  std::uint64_t offset;
};
Place place_of(std::uintptr_t address);

// The language binding to which a loaded file belongs, as its path tells. fortran: the MPI library,
// its Fortran binding, or Weft. python: mpi4py. none: the application.
enum class Binding : unsigned char { none, fortran, python };
Binding binding_of(const char* path);

}  // namespace weft
