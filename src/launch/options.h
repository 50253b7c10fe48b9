// Parses the options of `weft run`. They are stored as WEFT_* variables. If the program is a
// launcher, they are also repeated on the `weft run` that is inserted before the launcher's
// programs, since a launcher need not pass its environment to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::launch {

enum class Family { unknown, mpich, openmpi, abi };
const char* family_name(Family family);
// Returns the MPI family that the text names; Family::unknown if the text is empty. If it names
// none, the result is an error that lists the families.
Result<Family> family_of_word(std::string_view text);

struct RunOptions {
  Family mpi = Family::unknown;  // from --mpi or WEFT_MPI; unknown: it is detected later
  bool verbose = false;
  bool watched = false;  // true if the advisor's library is to be preloaded
  bool engines = true;   // true if Weft's library is to be preloaded
  enum class Help : unsigned char { none, text, json } help = Help::none;
  std::vector<std::string> command;
  std::string refusal;  // reason why some option or variable is wrong; empty if all are right
  // The mistake in the site file, of which nothing is then used; empty if there is none.
  std::string site_mistake;
};

// Reads the arguments after `weft run`, sets the corresponding WEFT_* variables, and checks all
// WEFT_* variables (result in refusal). Options override the environment, which overrides the site
// file. self: the absolute path of this program.
Result<RunOptions> parse_run_options(const std::string& self, int argc, char** argv);

// Returns the options of `weft run` that correspond to the WEFT_* variables of this process.
std::vector<std::string> options_from_environment(bool verbose);

}  // namespace weft::launch
