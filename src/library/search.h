// Where the MPI library's functions and variables are, whenever and however it came into the
// process.
#pragma once

#include <link.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "library/generated/call_ids.h"

namespace weft {

// The next definition of a function behind this library; nullptr if there is none.
void* find(const char* name);
// The MPI library's own function, past every library of Weft's: the advisor's may come before the
// engines'.
void* find_behind_weft(const char* name);
// Variables by the global order, not the next one: the program may hold the copy that counts.
void* find_variable(const char* name);
// The name, without its directory, of the file that an address was loaded from.
std::string file_of(void* address);
// Whether the address lies in Fortran's binding. That tells the library only after a call that the
// callbacks are Fortran's, which are called in another way.
bool is_fortran_binding(const void* address);
// The addresses between which an object lies in memory.
struct Extent {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return begin <= place && place < end;
  }
};
Extent extent_of(const dl_phdr_info& object);
// That of the MPI library; empty where none is loaded, or one of another family.
Extent library_extent();
// Remembers where the MPI library lies in memory, for from_library().
void note_library();

// Binds next_calls; may be called by several threads at once.
void bind_now();
// Whether this address lies in the MPI library, which calls itself by PMPI_ names.
bool from_library(const void* caller);
// The application called what no library in the chain has: says so and aborts.
[[noreturn]] void missing_call(CallId id);

// An error where the process runs another MPI family than this library was built for: its handles
// are of another size, so that no call may go through Weft.
Result<bool> check_family();

}  // namespace weft
