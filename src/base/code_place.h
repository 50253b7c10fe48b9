// Maps code addresses to the files of this process.
#pragma once

#include <cstdint>

namespace weft {

// The loaded file that holds an address ("" for the program itself, "?" if there is none), and the
// address as the file's symbols count.
struct Place {
  char file[256];
  std::uint64_t offset;
};
Place place_of(std::uintptr_t address);

// The kind of a loaded file, by its path: the MPI library's binding for a language other than C,
// Weft, or the application.
enum class Binding : unsigned char { none, fortran, python };
Binding binding_of(const char* path);

}  // namespace weft
