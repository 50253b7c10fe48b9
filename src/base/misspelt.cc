// The names come from the reference, which has all of them (tools/generate_reference.py).
#include "base/misspelt.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/generated/variable_names.h"

namespace weft {
namespace {

constexpr std::string_view kPrefix = "WEFT_";

char capital(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

// Letters to put in, to leave out, to change, or to swap with the next one (optimal string
// alignment).
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

std::string meant_by(std::string_view name) {
  if (!name.starts_with(kPrefix)) return "";
  name.remove_prefix(kPrefix.size());
  std::string capitals(name);
  std::ranges::transform(capitals, capitals.begin(), capital);
  std::string_view meant;
  std::size_t fewest = std::string_view::npos;
  for (std::string_view rest = kVariableNames; !rest.empty();) {
    const std::string_view known = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(known.size() + 1, rest.size()));
    if (name == known) return "";
    const std::size_t needed = edits(capitals, known);
    if (4 * needed > known.size() || needed >= fewest) continue;
    meant = known;
    fewest = needed;
  }
  return meant.empty() ? "" : std::string(kPrefix).append(meant);
}

std::vector<std::string> misspelt_variables(const char* const* environment) {
  std::vector<std::string> sentences;
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    if (!entry.starts_with(kPrefix)) continue;
    const std::string name(entry.substr(0, entry.find('=')));
    if (const std::string meant = meant_by(name); !meant.empty())
      sentences.push_back(name + " is not a variable of Weft: did you mean " + meant + "?");
  }
  return sentences;
}

}  // namespace weft
