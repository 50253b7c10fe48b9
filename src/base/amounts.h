// Formats times and amounts of data as text for people.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Returns the time as text with three digits and a suitable unit, for instance "5.74 ms".
std::string time_words(double seconds);

// Returns the amount as text with a suitable unit, for instance "72.0 MiB". Values below 1 KiB have
// no decimals.
std::string data_words(std::int64_t bytes);

}  // namespace weft
