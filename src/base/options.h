// The options of Weft as data. The library reads their variables by this table, ranks compare by it
// what all must have alike, and `weft run`, its help, the reference pages, man pages and shell
// completion (tools/generate_reference) are made from it.
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
  const char* argument;       // as the help calls its value; "": it takes none
  const char* choices;        // separated by ", "; capitals stand for values; "": any value
  const char* default_value;  // in words where no value says the same
  const char* variable;       // "": none
  // The variable's value where the option stands alone. Such an option takes a value only after
  // '='. nullptr: the option always needs a value.
  const char* alone;
  const char* text;
  // Sets the field of Config that the variable stands for, or refuses the value. nullptr: Config
  // has no such field.
  Result<bool> (*read)(std::string_view value, Config& config) = nullptr;
  // A fact that all ranks of a job must agree on; nullptr if ranks may differ.
  // Why: an option that decides what travels, and differs between ranks, makes the job hang.
  Fact (*fact)(const Config& config) = nullptr;
};

std::span<const Option> option_table();

inline constexpr const char* kHelpOption = "--help";
inline constexpr const char* kVerboseOption = "--verbose";
// Takes KIND=NAME, and has one variable for each KIND.
inline constexpr const char* kAlgorithmOption = "--algorithm";
inline constexpr const char* kAlgorithmVariable = "WEFT_ALGORITHM_";
// Returns the variable of one kind, such as WEFT_ALGORITHM_ALLREDUCE.
std::string algorithm_variable(Kind kind);

// Refuses a file that holds something other than plans.
Result<bool> check_plan_cache(const std::string& name);

inline constexpr const char* kMpiChoices = "mpich, intelmpi, openmpi, abi";

// The fact of an engine or a placement that an option or a communicator's hint asks for.
Fact engine_fact(const std::string& name, Engine engine);
Fact placement_fact(const std::string& name, const PlacementPolicy& placement);

}  // namespace weft
