// Parses the options of `weft run` and stores them as WEFT_* variables. If the program is a
// launcher, the options are also repeated on each `weft run` that is inserted before the launcher's
// programs, since a launcher need not pass its environment to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::launch {

enum class Family { unknown, mpich, openmpi, abi };
const char* family_name(Family family);
// Returns the MPI family that the text names, such as mpich or openmpi; Family::unknown for an
// empty text. Any other text is an error, whose message lists the families.
Result<Family> family_of_word(std::string_view text);

struct RunOptions {
  Family mpi = Family::unknown;  // from --mpi or WEFT_MPI; unknown: detected from the program
  bool verbose = false;
  bool watched = false;  // true if the advisor's library is to be preloaded
  bool engines = true;   // true if the library with Weft's collectives is to be preloaded
  enum class Help : unsigned char { none, text, json } help = Help::none;
  std::vector<std::string> command;
  std::string refusal;  // why an option or variable is wrong; empty if all are right
  // The mistake in the site file, none of whose settings is then used; empty if there is no
  // mistake.
  std::string site_mistake;
};

// Parses the arguments after `weft run`, sets the corresponding WEFT_* variables, and checks all
// WEFT_* variables; an error in them is stored in `refusal`. Options override the environment,
// which overrides the site file. self: the absolute path of this program.
Result<RunOptions> parse_run_options(const std::string& self, int argc, char** argv);

// Returns the options of `weft run` that are equivalent to the WEFT_* variables of this process.
// verbose: whether to add --verbose.
std::vector<std::string> options_from_environment(bool verbose);

}  // namespace weft::launch
