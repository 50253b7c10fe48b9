// Where in the files of this process an address of code lies.
#pragma once

#include <cstdint>

namespace weft {

// The loaded file that holds an address ("": the program itself, "?": none does), and the address
// as its symbols count.
struct Place {
  char file[256];
  std::uint64_t offset;
};
Place place_of(std::uintptr_t address);

// What a loaded file is, by its path: the MPI library in a language other than C, Weft, or the
// application.
enum class Binding : unsigned char { none, fortran, python };
Binding binding_of(const char* path);

}  // namespace weft
