// Parses the options of `weft run`. They are set as WEFT_* variables, and repeated on the `weft
// run` that is inserted before the programs of a launcher, since a launcher need not pass its
// environment to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::launch {

enum class Family { unknown, mpich, openmpi, abi };
const char* family_name(Family family);
// Returns the family that the text names; Family::unknown if it is empty. An error lists the
// families if it names none.
Result<Family> family_of_word(std::string_view text);

struct RunOptions {
  Family mpi = Family::unknown;  // --mpi or WEFT_MPI; unknown: detected later
  bool verbose = false;
  bool watched = false;  // preload the advisor's library
  bool engines = true;   // preload Weft's library
  enum class Help : unsigned char { none, text, json } help = Help::none;
  std::vector<std::string> command;
  std::string refusal;  // why the value of an option or variable is wrong; empty if all are right
  // Mistake in the site file, which then sets nothing; empty if there is none.
  std::string site_mistake;
};

// Reads the arguments after `weft run`, sets the corresponding WEFT_* variables, and checks all
// WEFT_* variables (result in refusal). Options override the environment, which overrides the site
// file. self: the absolute path of this program.
Result<RunOptions> parse_run_options(const std::string& self, int argc, char** argv);

// Returns the options of `weft run` that correspond to the WEFT_* variables of this process.
std::vector<std::string> options_from_environment(bool verbose);

}  // namespace weft::launch
