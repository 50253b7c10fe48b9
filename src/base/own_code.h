// Tells whether a code address lies in the library or executable that contains this function.
#pragma once

#include <cstdint>

// The linker defines these two symbols: the beginning of the loaded file, and the end of its code.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
}

namespace weft {

inline bool is_own_code(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         at < reinterpret_cast<std::uintptr_t>(etext);
}

}  // namespace weft
