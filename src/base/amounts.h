// Formats times and amounts of data for people.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Returns for instance "5.74 ms": three digits and a suitable unit.
std::string time_words(double seconds);

// Returns for instance "72.0 MiB"; values below 1 KiB have no decimals.
std::string data_words(std::int64_t bytes);

}  // namespace weft
