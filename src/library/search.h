// Finds the MPI library's functions and variables, whenever and however it was loaded.
#pragma once

#include <link.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "library/generated/call_ids.h"

namespace weft {

// Returns the next definition of a function after this library; nullptr if there is none.
void* find(const char* name);
// Returns the MPI library's own function. It skips all of Weft's libraries, since the advisor's may
// precede the engines'.
void* find_behind_weft(const char* name);
// Searches the global scope rather than the objects after Weft: the program may hold the valid
// copy.
void* find_variable(const char* name);
// Returns the file, without its directory, from which an address was loaded.
std::string file_of(void* address);
// Returns whether the address is in the Fortran binding. The binding tells the library only after a
// call that the callbacks are Fortran's, which have another calling convention.
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
// Returns the MPI library's range; empty if none is loaded, or one of another family.
Extent library_extent();
// Stores the MPI library's address range for from_library().
void note_library();

// Binds next_calls. It is thread-safe.
void bind_now();
// Returns whether the address is in the MPI library, which calls itself by PMPI_ names.
bool from_library(const void* caller);
// Reports that the application called a function that no library in the chain defines, and aborts.
[[noreturn]] void missing_call(CallId id);

// Returns an error if the process runs another MPI family than this library was built for. Handles
// then have another size, so no call may go through Weft.
Result<bool> check_family();

}  // namespace weft
