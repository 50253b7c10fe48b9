// Prepares text that a user gave for printing in a message. Such text may contain newlines or
// terminal control codes, or be very long.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Returns the text with unprintable characters replaced by \n, \t or a code such as \x1b. Long text
// is truncated and ends with "...".
std::string printable(std::string_view text);

// Returns the text in single quotes, with unprintable characters replaced as in printable().
std::string in_quotes(std::string_view text);

}  // namespace weft
