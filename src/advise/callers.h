// Finds the place in the application from which MPI is called.
#pragma once

#include <cstdint>

#include "base/code_place.h"

namespace weft::advise {

// Describes a function on the call path from the program's main() to an MPI call.
struct Outer {
  std::uintptr_t address = 0;  // address to which the call returns
  const char* file = "";       // source file of an interpreted program; "" for compiled code
  int line = 0;                // source line; 0 for compiled code, where `address` is used
  bool own = false;            // true if the function belongs to the program, not to a library
};
// The number of functions on the call path that are kept for each MPI call: the innermost functions
// of libraries, and then the functions of the program itself.
inline constexpr int kOuter = 6;

struct Caller {
  std::uintptr_t address = 0;  // return address of the MPI call
  const char* where = "";  // "file:line:function" of an interpreted program; "" for compiled code
  Binding binding = Binding::none;
  // The functions from the one that made the MPI call outwards, up to functions of the program
  // itself. A call inside a library's function is thus recorded separately for each place that
  // calls this function.
  Outer outer[kOuter] = {};
  int outers = 0;
  bool own = false;       // true if the function that made the MPI call belongs to the program
  std::uint64_t way = 0;  // hash of all return addresses on the call path
};

// Identifies an MPI call of the application by its return address and the end of the wrapper's
// stack frame (__builtin_dwarf_cfa). The return address is stored on the stack directly below that
// end.
struct Called {
  const void* address;
  const void* frame_end;
};

// Returns the function that made the MPI call and the call path to it. Language bindings such as
// Fortran's are skipped. For an interpreted program, returns the source line that the interpreter
// is running.
Caller find_caller(Called called);
// Returns only the line that calls MPI: its address and, in an interpreted program, `where`. The
// call path to it is not searched.
Caller find_line(Called called);
// Returns the address of the call of MPI without asking an interpreter, whose lock may block; 0 if
// only the interpreter knows it.
std::uintptr_t caller_address(Called called);

// Returns the place in the program whose instruction accessed memory. address: the address behind
// the instruction. returns_to: the return address of the instruction's function. If that function
// belongs to the C library, such as memcpy(), the place is where it is called.
Place toucher(std::uintptr_t address, std::uintptr_t returns_to);

}  // namespace weft::advise
