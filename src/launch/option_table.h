// The options of `weft run` as data: what parses them, prints the help and writes the reference
// pages, man pages and shell completion (tools/generate_reference) all read this one table.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace weft::launch {

enum class Group : unsigned char { engine, reports, memory, tuning, mpi, general };
inline constexpr std::array<const char*, 6> kGroupTitles = {
    "Engine and placement", "What is reported", "Memory and transport", "Tuning",
    "MPI library",          "General"};

struct Option {
  Group group;
  const char* name;
  const char* argument;       // how the help calls its value; "": it takes none
  const char* choices;        // separated by ", "; capitals stand for values; "": any value
  const char* default_value;  // in words where no value says the same
  const char* variable;       // "": none
  // What the variable becomes where the option stands alone. Such an option takes its value only
  // after '='. nullptr: it always needs a value.
  const char* alone;
  const char* text;
};

std::span<const Option> option_table();

inline constexpr const char* kHelpOption = "--help";
inline constexpr const char* kVerboseOption = "--verbose";
// Takes KIND=NAME, and has one variable for each KIND.
inline constexpr const char* kAlgorithmOption = "--algorithm";
inline constexpr const char* kAlgorithmVariable = "WEFT_ALGORITHM_";

}  // namespace weft::launch
