// Asks the kernel what kind of memory an address range of this process is.
#pragma once

#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

// Returns Unknown::none if the advisor may protect all pages of the range: they are readable and
// writable, not executable, private, and not on the main thread's stack. Otherwise returns the
// reason why not. Shared memory may not be protected, since other processes would use it unnoticed.
// The function allocates no memory. Only one thread may call it at a time.
Unknown plain_memory(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
