// Prints amounts as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Returns for instance "5.74 ms": three digits and the unit that fits.
std::string time_words(double seconds);

// Returns for instance "72.0 MiB"; bytes below 1 KiB are whole.
std::string data_words(std::int64_t bytes);

}  // namespace weft
