// `weft run --help`, from the table of options, and the same as JSON for tools/generate_reference.
#pragma once

#include <string>

namespace weft::launch {

std::string run_help();

// `weft run --help=json`: options, hints and algorithms. Existing members keep their names and
// meanings.
std::string run_help_json();

}  // namespace weft::launch
