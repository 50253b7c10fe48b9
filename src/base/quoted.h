// Prints the user's words in sentences. A value may contain newlines and terminal codes, or be very
// long.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Turns unprintable characters into \n, \t or \x1b, and truncates a long text with "...".
std::string printable(std::string_view text);

// Returns printable(text) between single quotes.
std::string in_quotes(std::string_view text);

}  // namespace weft
