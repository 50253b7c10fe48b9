// Opens hardware breakpoints, by which the advisor watches result buffers of at most 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::advise {

bool fits_breakpoint(std::uintptr_t begin, std::size_t bytes);
// Sets a hardware breakpoint: an access to the bytes raises SIGTRAP in the thread that makes it.
// Returns the breakpoint's descriptor; -1 if the system does not permit it.
int breakpoint_on(std::uintptr_t begin, std::size_t bytes);
// Keeps an event of the kernel's performance monitor open, so that the first breakpoint is set as
// fast as later ones. Must be called once.
void keep_an_event();

}  // namespace weft::advise
