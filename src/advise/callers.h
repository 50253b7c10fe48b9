// Where in the application a call of MPI stands.
#pragma once

#include <cstdint>

#include "base/code_place.h"

namespace weft::advise {

// A function that called the one before, on the way from the program to MPI.
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
  // Who called that function: as many as it takes to come to lines of the program's own. A call in
  // a wrapper is as many as the wrapper has callers.
  Outer outer[kOuter] = {};
  int outers = 0;
  bool own = false;       // the innermost
  std::uint64_t way = 0;  // of all functions on the way, as a number
};

// Of a function that the application calls: the address behind that call, and the end of the
// function's frame (__builtin_dwarf_cfa), right below which that address lies.
struct Called {
  const void* address;
  const void* frame_end;
};

// Language bindings are no callers: the first frame behind them is, or the interpreter's.
Caller find_caller(Called called);
// The same without asking an interpreter, which may be waited for; 0: only that one knows.
std::uintptr_t caller_address(Called called);

// Where the program was when an instruction touched memory: there, or where a function of the C
// library was called that keeps no frame, as those do that copy memory. address: behind the
// instruction.
Place toucher(std::uintptr_t address, std::uintptr_t returns_to);

}  // namespace weft::advise
