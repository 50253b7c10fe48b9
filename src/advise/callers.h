// Finds the place in the application from which MPI is called.
#pragma once

#include <cstdint>

#include "base/code_place.h"

namespace weft::advise {

// A function on the call path from the program to MPI.
struct Outer {
  std::uintptr_t address = 0;  // behind the call
  const char* file = "";       // of an interpreter's program, with the line
  int line = 0;                // 0: an address tells more
  bool own = false;            // a line of the program's, not of a library's
};
inline constexpr int kOuter = 6;  // kept: of a library's the innermost, of the program's all

struct Caller {
  std::uintptr_t address = 0;  // behind the call
  const char* where = "";      // of an interpreter's program: "file:line:function"
  Binding binding = Binding::none;
  // The callers of the function that holds `address`, up to functions of the program itself. A call
  // inside a wrapper is recorded separately for each caller of the wrapper.
  Outer outer[kOuter] = {};
  int outers = 0;
  bool own = false;       // the innermost
  std::uint64_t way = 0;  // of all functions on the way, as a number
};

// Identifies an application's call: its return address, and the end of the called function's frame
// (__builtin_dwarf_cfa), right below which that address is stored.
struct Called {
  const void* address;
  const void* frame_end;
};

// Language bindings are skipped: the caller is the first frame outside them, or the interpreter's.
Caller find_caller(Called called);
// Returns find_caller()'s address without asking an interpreter, which might have to be waited for;
// 0 if only an interpreter knows it.
std::uintptr_t caller_address(Called called);

// Returns the place in the program that touched memory. For C library functions without a frame,
// such as memcpy, it is their caller. address: the one after the touching instruction.
Place toucher(std::uintptr_t address, std::uintptr_t returns_to);

}  // namespace weft::advise
