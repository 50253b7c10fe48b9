// Asks the kernel about a range of this process's memory.
#pragma once

#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

// Returns Unknown::none if the range is readable and writable throughout, not executable, private,
// and not on the first thread's stack. Shared memory is excluded, since other processes would use
// it unobserved. It does not allocate. Only one thread may call it at a time.
Unknown plain_memory(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
