// What the kernel says of a part of this process's memory.
#pragma once

#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

// Unknown::none: readable and writable throughout, not executable, not the first stack, and nobody
// else's: other processes and other mappings would use it unseen.
// Allocates nothing; one caller at a time.
Unknown plain_memory(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
