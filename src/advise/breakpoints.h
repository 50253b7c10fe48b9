// Sets hardware breakpoints, by which the advisor notices the first access to receive buffers of at
// most 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::advise {

bool fits_breakpoint(std::uintptr_t begin, std::size_t bytes);
// Sets a hardware breakpoint on the bytes. An access raises SIGTRAP in the thread that makes it.
// Returns the breakpoint's file descriptor; -1 if the system does not permit it.
int breakpoint_on(std::uintptr_t begin, std::size_t bytes);
// Keeps an event of the kernel's performance monitor open, because the first event takes the kernel
// milliseconds, and further ones only microseconds. It must be called once, before the first
// breakpoint.
void keep_an_event();

}  // namespace weft::advise
