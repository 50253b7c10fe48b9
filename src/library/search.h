// Finds the MPI library's functions and variables, whenever and however the library was loaded.
#pragma once

#include <link.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "library/generated/call_ids.h"

namespace weft {

// Returns the next definition of a function after this library; nullptr if there is none.
void* find(const char* name);
// Returns the MPI library's own function, nullptr if there is none. It skips all of Weft's
// libraries, since the advisor's may precede the engines'.
void* find_behind_weft(const char* name);
// Returns the address of a variable of the MPI library; nullptr if there is none. It searches the
// global scope rather than the objects after Weft, since the program may hold the valid copy.
void* find_variable(const char* name);
// Returns the name, without directory, of the file from which an address was loaded.
std::string file_of(void* address);
// Returns whether the address is in the library's Fortran binding. Calls from there need care: only
// afterwards does the binding tell the library that the callbacks are Fortran's, which have another
// calling convention.
bool is_fortran_binding(const void* address);
// The address range of a loaded object.
struct Extent {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return begin <= place && place < end;
  }
};
Extent extent_of(const dl_phdr_info& object);
// Returns the MPI library's address range; empty if none is loaded, or one of another family.
Extent library_extent();
// Stores the MPI library's address range, which from_library() uses.
void note_library();

// Looks up the functions that wrappers call (next_calls). It is thread-safe.
void bind_now();
// Returns whether the address is in the MPI library: then a call from there is one that the library
// makes itself, by a PMPI_ name.
bool from_library(const void* caller);
// Reports that the application called a function that no library in the chain defines, and aborts.
[[noreturn]] void missing_call(CallId id);

// Returns an error if the process runs another MPI family than this library was built for. Handles
// then have another size, so no call may go through Weft.
Result<bool> check_family();

}  // namespace weft
