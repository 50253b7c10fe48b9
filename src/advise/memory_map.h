// What the kernel says of a part of this process's memory.
#pragma once

#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

// Unknown::none: readable and writable throughout, not executable, and not the first stack.
// Allocates nothing; one caller at a time.
Unknown plain_memory(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
