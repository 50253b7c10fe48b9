// Hardware breakpoints watch result buffers of at most 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::advise {

bool fits_breakpoint(std::uintptr_t begin, std::size_t bytes);
// Returns the breakpoint's descriptor; -1 if the system does not permit it. An access to the bytes
// raises SIGTRAP in the thread that makes it.
int breakpoint_on(std::uintptr_t begin, std::size_t bytes);
// Must be called once, so that the first breakpoint is no slower than later ones.
void keep_an_event();

}  // namespace weft::advise
