// Where in the application a call of MPI stands.
#pragma once

#include <cstdint>

#include "base/code_place.h"

namespace weft::advise {

struct Caller {
  std::uintptr_t address = 0;  // behind the call
  const char* where = "";      // of an interpreter's program: "file:line:function"
  Binding binding = Binding::none;
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
