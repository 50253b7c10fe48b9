// Where in the application a call of MPI stands.
#pragma once

#include <cstdint>

namespace weft::advise {

struct Caller {
  std::uintptr_t address = 0;  // behind the call
  const char* where = "";      // of an interpreter's program: "file:line:function"
};

// Language bindings are no callers: the first frame behind them is, or the interpreter's.
Caller find_caller(const void* return_address);

// The loaded file that holds an address, and the address as its symbols count.
struct Place {
  char file[256];
  std::uint64_t offset;
};
Place place_of(std::uintptr_t address);

}  // namespace weft::advise
