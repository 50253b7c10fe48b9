// Finds the place in the application from which MPI is called.
#pragma once

#include <cstdint>

#include "base/code_place.h"

namespace weft::advise {

// A function on the call path from the program to MPI.
struct Outer {
  std::uintptr_t address = 0;  // return address
  const char* file = "";       // source file of an interpreted program; "" for compiled code
  int line = 0;                // source line; 0 if only `address` tells the place
  bool own = false;            // belongs to the program, not to a library
};
// Number of callers that are kept for one MPI call: the innermost ones of a library, and those of
// the program itself.
inline constexpr int kOuter = 6;

struct Caller {
  std::uintptr_t address = 0;  // return address of the MPI call
  const char* where = "";  // "file:line:function" of an interpreted program; "" for compiled code
  Binding binding = Binding::none;
  // The callers of the function that holds `address`, up to functions of the program itself. A call
  // inside a wrapper is recorded separately for each caller of the wrapper.
  Outer outer[kOuter] = {};
  int outers = 0;
  bool own = false;       // the innermost caller belongs to the program
  std::uint64_t way = 0;  // hash of all return addresses on the call path
};

// Identifies a call of the application by its return address and the end of the called function's
// frame (__builtin_dwarf_cfa), directly below which that address is stored.
struct Called {
  const void* address;
  const void* frame_end;
};

// Returns the first caller outside language bindings; for an interpreted program, the line that the
// interpreter runs.
Caller find_caller(Called called);
// Returns the line of find_caller() only: its address and, in an interpreted program, `where`. It
// does not look for the callers of that function.
Caller find_line(Called called);
// Returns the address of find_caller() without asking an interpreter, whose lock may block; 0 if
// only the interpreter knows the caller.
std::uintptr_t caller_address(Called called);

// Returns the place in the program that accessed memory. If a C library function without a frame,
// such as memcpy, made the access, that is its caller. address: the one after the accessing
// instruction.
Place toucher(std::uintptr_t address, std::uintptr_t returns_to);

}  // namespace weft::advise
