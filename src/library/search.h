// Finds the MPI library's functions and variables, even if the library is loaded late (dlopen()) or
// in a local scope.
#pragma once

#include <link.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "library/generated/call_ids.h"

namespace weft {

// Returns the definition of a function that comes next after this library in the search order;
// nullptr if there is none.
void* find(const char* name);
// Returns the MPI library's own function; nullptr if there is none. It skips all of Weft's
// libraries, since the advisor's library may come before the one with the collectives.
void* find_behind_weft(const char* name);
// Returns the address of a variable of the MPI library; nullptr if there is none. It searches the
// global scope from the beginning, because the executable may contain the valid copy of the
// variable (copy relocation).
void* find_variable(const char* name);
// Returns the name, without directory, of the loaded file that contains the address; "" if there is
// none.
std::string file_of(void* address);
// Returns whether the address lies in the MPI library's Fortran binding. Calls from there need
// care: the binding registers a Fortran callback, such as a reduction operator, and only afterwards
// tells the MPI library that this callback has Fortran's calling convention.
bool is_fortran_binding(const void* address);
// Holds the address range of a loaded object.
struct Extent {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return begin <= place && place < end;
  }
};
Extent extent_of(const dl_phdr_info& object);
// Returns the address range of the MPI library; an empty range if no MPI library is loaded, or one
// of another family than this library was built for.
Extent library_extent();
// Finds the MPI library's address range and stores it. from_library() returns false until this has
// been called.
void note_library();

// Looks up the functions that Weft's wrappers call next (next_calls). Thread-safe.
void bind_now();
// Returns whether the address lies in the MPI library. An MPI call from there is one that the MPI
// library makes internally, which Weft must pass on unchanged.
bool from_library(const void* caller);
// Reports that the application called a function that the MPI library does not define, and aborts
// the process.
[[noreturn]] void missing_call(CallId id);

// Returns an error if the process uses another MPI family (MPICH, Open MPI or the MPI ABI) than
// this library was built for. In that case MPI handles have another size, and no call may go
// through Weft.
Result<bool> check_family();

}  // namespace weft
