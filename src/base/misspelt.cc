// Finds misspelt variables of Weft. The correct names come from a list that
// tools/generate_reference.py generates.
#include "base/misspelt.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/generated/variable_names.h"
#include "base/quoted.h"

namespace weft {
namespace {

constexpr std::string_view kPrefix = "WEFT_";

char capital(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

// Returns the edit distance of two words: the least number of letters to insert, delete, change, or
// swap with the next letter (optimal string alignment distance).
std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> two_before, before(to.size() + 1), row(to.size() + 1);
  std::iota(before.begin(), before.end(), 0);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = before[j - 1] + (from[i - 1] != to[j - 1]);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    two_before = std::exchange(before, row);
  }
  return before[to.size()];
}

}  // namespace

namespace {

// Returns whether the variable WEFT_`name` is set by others than the user: by Weft's own programs
// and tests, or by a module system or CMake as the directory of an installation.
bool is_of_others(std::string_view name) {
  constexpr std::string_view kOwn[] = {"ADVISE_", "FAULTS_", "LAB_",           "STANDIN_",
                                       "TEST_",   "STARTED", "PRELOAD_BEFORE", "REQUIRE_ALL"};
  constexpr std::string_view kPlaces[] = {"",    "ROOT", "DIR",     "HOME",   "PATH",
                                          "LIB", "BIN",  "INCLUDE", "PREFIX", "VERSION"};
  return std::ranges::any_of(kOwn, [&](auto start) { return name.starts_with(start); }) ||
         std::ranges::find(kPlaces, name) != std::end(kPlaces);
}

struct Nearest {
  std::string_view name;
  std::size_t edits = std::string_view::npos;

  bool is_meant() const { return 4 * edits <= name.size(); }
};

// Returns the variable of Weft that has the smallest edit distance from `name`.
Nearest nearest_to(std::string_view name) {
  std::string capitals(name);
  std::ranges::transform(capitals, capitals.begin(), capital);
  Nearest nearest;
  for (std::string_view rest = kVariableNames; !rest.empty();) {
    const std::string_view known = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(known.size() + 1, rest.size()));
    if (name == known) return {known, 0};
    const std::size_t needed = edits(capitals, known);
    const Nearest here{known, std::max<std::size_t>(needed, 1)};
    const bool is_better =
        here.is_meant() == nearest.is_meant() ? here.edits < nearest.edits : here.is_meant();
    if (is_better) nearest = here;
  }
  return nearest;
}

}  // namespace

std::string sentence_on_variable(std::string_view full_name) {
  if (!full_name.starts_with(kPrefix)) return "";
  const std::string_view name = full_name.substr(kPrefix.size());
  const Nearest nearest = nearest_to(name);
  if (nearest.edits == 0 || (!nearest.is_meant() && is_of_others(name))) return "";
  const std::string known = std::string(kPrefix).append(nearest.name);
  const std::string begins = printable(full_name) + " is not a variable of Weft";
  return nearest.is_meant() ? begins + ": did you mean " + known + "?"
                            : begins + " and has no effect: the nearest that it has is " + known;
}

std::vector<std::string> misspelt_variables(const char* const* environment) {
  std::vector<std::string> sentences;
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    std::string sentence = sentence_on_variable(entry.substr(0, entry.find('=')));
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace weft
