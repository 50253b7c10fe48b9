// Where in the application a call of MPI stands.
#pragma once

#include <cstdint>

#include "base/code_place.h"

namespace weft::advise {

struct Caller {
  std::uintptr_t address = 0;  // behind the call
  const char* where = "";      // of an interpreter's program: "file:line:function"
};

// Language bindings are no callers: the first frame behind them is, or the interpreter's.
Caller find_caller(const void* return_address);

}  // namespace weft::advise
