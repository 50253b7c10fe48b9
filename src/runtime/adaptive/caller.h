// Finds the place in the application that makes the current MPI call of this thread.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Returns the return address of the current MPI call in the application; 0 if it is not found.
// Unwinding the stack takes some microseconds.
std::uintptr_t application_caller();

// Returns the address in a form for addr2line, which finds function and line, for instance
// "0x11c9:/home/user/app". Returns "" if no loaded file contains the address.
std::string caller_words(std::uintptr_t address);

}  // namespace weft
