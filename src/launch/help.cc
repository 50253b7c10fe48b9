// Prints the help as text of 80 columns, and as JSON.
#include "launch/help.h"

#include <algorithm>
#include <string_view>

#include "base/hint_keys.h"
#include "base/kind.h"
#include "base/options.h"
#include "launch/algorithm_names.h"

namespace weft::launch {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 24;

constexpr const char* kUsage = "weft run [OPTIONS] -- COMMAND [ARGUMENTS]";
constexpr const char* kAbout =
    "Runs an unmodified MPI program with its collectives under Weft. COMMAND is one rank's program "
    "(mpiexec -n 4 weft run -- ./app) or the launcher itself (weft run -- mpiexec -n 4 ./app); "
    "Weft is then loaded into the ranks only.";
constexpr const char* kPrecedence = "An option wins over its variable.";
constexpr const char* kExitStatus =
    "The exit status is the program's own; 2 when Weft refuses; 126 or 127 when the program cannot "
    "be started or is not found.";

// Breaks `text` into lines that fit the width. used: the column in which the first line begins.
// indent: the number of spaces before each further line.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t used) {
  std::string lines;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (used > indent && used + 1 + end > kColumns) {
      lines += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      lines += ' ';
      ++used;
    }
    lines += text.substr(0, end);
    used += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + "\n";
}

std::string synopsis(const Option& option) {
  const std::string argument = option.argument;
  if (argument.empty()) return option.name;
  return option.name + (option.alone ? "[=" + argument + "]" : " " + argument);
}

// Returns the values, default and variable of an option as text, such as "E: native, assist;
// default: auto; variable: WEFT_ENGINE".
std::string facts(const Option& option) {
  std::string text;
  const auto add = [&](const char* what, const char* fact) {
    if (*fact) text += std::string(text.empty() ? "" : "; ") + what + ": " + fact;
  };
  add(option.argument, option.choices);
  add("default", option.default_value);
  add("variable", option.variable);
  return text;
}

std::string option_help(const Option& option) {
  std::string line = "  " + synopsis(option);
  const bool fits = line.size() + 2 <= kTextColumn;
  line += fits ? "" : "\n";
  line += std::string(fits ? kTextColumn - line.size() : kTextColumn, ' ');
  line += wrapped(option.text, kTextColumn, kTextColumn);
  if (const std::string more = facts(option); !more.empty())
    line += std::string(kTextColumn, ' ') + wrapped(more, kTextColumn, kTextColumn);
  return line;
}

std::string in_quotes(std::string_view text) {
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') word += '\\';
    word += c;
  }
  return word + "\"";
}

std::string member(const char* name, std::string_view text) {
  return in_quotes(name) + ": " + in_quotes(text);
}

std::string option_json(const Option& option) {
  return "    {" + member("name", option.name) + ", " + member("argument", option.argument) + ", " +
         member("synopsis", synopsis(option)) + ",\n     " + member("choices", option.choices) +
         ", " + member("default", option.default_value) + ", " +
         member("variable", option.variable) + ",\n     " +
         member("alone", option.alone ? option.alone : "") + ",\n     " +
         member("text", option.text) + ",\n     " +
         member("group", kOptionGroupTitles[static_cast<std::size_t>(option.group)]) + "}";
}

std::string algorithms_json(Kind kind) {
  std::string names;
  for (const char* const name : algorithm_names(kind))
    names += (names.empty() ? "" : ", ") + in_quotes(name);
  return "    " + in_quotes(kind_name(kind)) + ": [" + names + "]";
}

// Collects the entries of a JSON list or object, and puts commas between them.
class Entries {
 public:
  void add(const std::string& entry) { text_ += (text_.empty() ? "\n" : ",\n") + entry; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string run_help() {
  std::string help = std::string("Usage: ") + kUsage + "\n\n" + wrapped(kAbout, 0, 0);
  const OptionGroup* group = nullptr;
  for (const Option& option : option_table()) {
    if (!group || *group != option.group)
      help +=
          std::string("\n") + kOptionGroupTitles[static_cast<std::size_t>(option.group)] + ":\n";
    group = &option.group;
    help += option_help(option);
  }
  return help + "\n" + wrapped(std::string(kPrecedence) + " " + kExitStatus, 0, 0);
}

std::string run_help_json() {
  Entries options, hints, algorithms;
  for (const Option& option : option_table()) options.add(option_json(option));
  for (const HintKey& hint : kHintKeys)
    hints.add("    {" + member("key", hint.key) + ", " + member("option", hint.option) + ", " +
              member("text", hint.text) + "}");
  for (int kind = 0; kind < kKinds; ++kind) algorithms.add(algorithms_json(Kind(kind)));
  return "{\n  " + member("command", "weft run") + ",\n  " + member("usage", kUsage) + ",\n  " +
         member("about", kAbout) + ",\n  " + member("precedence", kPrecedence) + ",\n  " +
         member("exit_status", kExitStatus) + ",\n  \"options\": [" + options.text() +
         "],\n  \"hints\": [" + hints.text() + "],\n  \"algorithms\": {" + algorithms.text() +
         "}\n}\n";
}

}  // namespace weft::launch
