// Breakpoints of the processor, by which results of at most 8 bytes are watched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::advise {

bool fits_breakpoint(std::uintptr_t begin, std::size_t bytes);
// Its descriptor; -1: the system does not permit it. Any access raises SIGTRAP in the thread.
int breakpoint_on(std::uintptr_t begin, std::size_t bytes);
// Once, so that the first breakpoint is no slower than the next ones.
void keep_an_event();

}  // namespace weft::advise
