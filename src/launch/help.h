// Makes the texts of `weft run --help`, from the table of options, and its JSON form for
// tools/generate_reference.
#pragma once

#include <string>

namespace weft::launch {

std::string run_help();

// Returns the text of `weft run --help=json`: options, hints and algorithms. Existing members keep
// their names and meanings.
std::string run_help_json();

}  // namespace weft::launch
