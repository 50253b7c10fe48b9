// Finds the call site in the application of the call that this thread is in.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Returns the return address of the call in the application; 0 if it was not found. Unwinding takes
// some microseconds.
std::uintptr_t application_caller();

// Returns for instance "0x11c9:/home/user/app", from which addr2line gets function and line; "" if
// no loaded file contains the address.
std::string caller_words(std::uintptr_t address);

}  // namespace weft
