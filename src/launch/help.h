// Prints `weft run --help` from the table of options, and its JSON form for
// tools/generate_reference.py.
#pragma once

#include <string>

namespace weft::launch {

std::string run_help();

// Returns the text of `weft run --help=json`, which contains all options, info hints and
// algorithms. Later versions of Weft may add members, but must keep the names and meanings of
// these.
std::string run_help_json();

}  // namespace weft::launch
