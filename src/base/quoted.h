// Prints the user's words in sentences: a value may contain line ends and terminal codes, or be
// very long.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Turns unprintable characters into \n, \t or \x1b, and ends a text that is too long in "...".
std::string printable(std::string_view text);

// Puts printable() between ' and '.
std::string in_quotes(std::string_view text);

}  // namespace weft
