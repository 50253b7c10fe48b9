// The place in the application of the call that this thread is in.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Behind the call; 0: not found. Unwinds the stack, which takes some microseconds.
std::uintptr_t application_caller();

// "0x11c9:/home/user/app": what addr2line needs to name function and line. "" where no loaded file
// holds it.
std::string caller_words(std::uintptr_t address);

}  // namespace weft
