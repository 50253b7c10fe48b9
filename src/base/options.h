// The options of Weft as data. The library reads their variables by this table, and ranks compare
// by it the settings that must be equal. `weft run`, its help, the reference pages, man pages and
// shell completion (tools/generate_reference) are made from it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/facts.h"
#include "base/result.h"

namespace weft {

enum class OptionGroup : unsigned char { engine, reports, memory, tuning, mpi, general };
inline constexpr std::array<const char*, 6> kOptionGroupTitles = {
    "Engine and placement", "What is reported", "Memory and transport", "Tuning",
    "MPI library",          "General"};

struct Option {
  OptionGroup group;
  const char* name;
  const char* argument;  // the name of the option's value in the help; "" if it takes none
  const char* choices;   // possible values, separated by ", "; capital letters are placeholders; ""
                         // for any value
  const char* default_value;  // default value, described in words if necessary
  const char* variable;       // environment variable; "" for none
  // The variable's value if the option is given without a value. Such an option takes a value only
  // after '='. nullptr: the option always needs a value.
  const char* alone;
  const char* text;
  // Sets the field of Config that belongs to the variable, or returns an error for a wrong value.
  // nullptr: Config has no such field.
  Result<bool> (*read)(std::string_view value, Config& config) = nullptr;
  // Returns a fact on which all ranks of a job must agree; nullptr if ranks may differ. An option
  // that determines messages and differs between ranks would make the job hang.
  Fact (*fact)(const Config& config) = nullptr;
};

std::span<const Option> option_table();

inline constexpr const char* kHelpOption = "--help";
inline constexpr const char* kVerboseOption = "--verbose";
// The option that names an algorithm. It takes KIND=NAME, and has a variable for each KIND.
inline constexpr const char* kAlgorithmOption = "--algorithm";
inline constexpr const char* kAlgorithmVariable = "WEFT_ALGORITHM_";
// Returns the variable for a kind, such as WEFT_ALGORITHM_ALLREDUCE.
std::string algorithm_variable(Kind kind);

// Returns an error if the file holds something other than plans.
Result<bool> check_plan_cache(const std::string& name);

inline constexpr const char* kMpiChoices = "mpich, intelmpi, openmpi, abi";

// Return the fact of an engine or placement that an option or a communicator's hint requests.
Fact engine_fact(const std::string& name, Engine engine);
Fact placement_fact(const std::string& name, const PlacementPolicy& placement);

}  // namespace weft
