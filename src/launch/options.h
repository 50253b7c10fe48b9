// The options of `weft run`, and what they become: WEFT_* variables and, in front of the programs
// that a launcher starts, the same options again.
// Why both: a launcher need not hand its environment to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::launch {

enum class Family { unknown, mpich, openmpi, abi };
const char* family_name(Family family);
// Returns the family that the text names; Family::unknown if it is empty, and an error that lists
// the families if it names none.
Result<Family> family_of_word(std::string_view text);

struct RunOptions {
  Family mpi = Family::unknown;  // --mpi or WEFT_MPI; unknown: found out
  bool verbose = false;
  bool watched = false;  // the advisor's library is loaded
  bool engines = true;   // Weft's is
  enum class Help : unsigned char { none, text, json } help = Help::none;
  std::vector<std::string> command;
  std::string refusal;       // of a value that an option or variable has; empty: all are right
  std::string site_mistake;  // in the site file, which then sets nothing; empty: there is none
};

// Reads the arguments after `weft run`, sets the WEFT_* variables that the options stand for and
// checks those and all that were set before, for refusal. Options win over the environment, and
// this over the site file. self: the absolute path of this program.
Result<RunOptions> parse_run_options(const std::string& self, int argc, char** argv);

// The options of `weft run` that say what the WEFT_* variables of this process say.
std::vector<std::string> options_from_environment(bool verbose);

}  // namespace weft::launch
