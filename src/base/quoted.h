// Words of the user's, as sentences have them.
// Why: a value may have ends of lines and codes for the terminal in it, or be very long.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// A character that cannot be printed becomes \n, \t or \x1b, and what is too long ends in "...".
std::string printable(std::string_view text);

// Puts printable() between ' and '.
std::string quoted(std::string_view text);

}  // namespace weft
