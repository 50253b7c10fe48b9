// Holds all options of Weft in a table. The library reads the environment variables by this table,
// and compares between ranks the settings that must be equal. The parser of `weft run`, its help,
// the reference pages, man pages and shell completions are generated from the table.
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
  const char* argument;  // name of the value in the help; "" if the option has no value
  // The possible values, separated by ", ", in which words in capital letters stand for a value
  // that the user chooses; "" for any value.
  const char* choices;
  const char* default_value;  // the default value as the help shows it
  const char* variable;       // the environment variable; "" for none
  // The variable's value if the option is given without a value; the option's value must then
  // follow an equals sign. nullptr: the option always needs a value.
  const char* alone;
  const char* text;
  // Parses the variable's value into a field of Config, or returns an error. nullptr: the option
  // has no field in Config.
  Result<bool> (*read)(std::string_view value, Config& config) = nullptr;
  // Returns the fact that all ranks must share, because the job would hang if this option differed
  // between them. nullptr: ranks may differ.
  Fact (*fact)(const Config& config) = nullptr;
};

std::span<const Option> option_table();

inline constexpr const char* kHelpOption = "--help";
inline constexpr const char* kVerboseOption = "--verbose";
// The name of the option that selects an algorithm. Its value is KIND=NAME; an environment variable
// exists for each KIND.
inline constexpr const char* kAlgorithmOption = "--algorithm";
inline constexpr const char* kAlgorithmVariable = "WEFT_ALGORITHM_";
// Returns the environment variable that selects the algorithm of a kind, such as
// WEFT_ALGORITHM_ALLREDUCE.
std::string algorithm_variable(Kind kind);

// Returns an error if the file exists but does not contain measured plans, so that Weft must not
// overwrite it.
Result<bool> check_plan_cache(const std::string& name);

inline constexpr const char* kMpiChoices = "mpich, intelmpi, openmpi, abi";

// Return the fact (the value on which all ranks must agree) for an engine or a placement. name: the
// option or info key with which the user requested it.
Fact engine_fact(const std::string& name, Engine engine);
Fact placement_fact(const std::string& name, const PlacementPolicy& placement);

}  // namespace weft
