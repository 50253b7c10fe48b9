// Converts facts to text, and describes differences between ranks.
#include "base/facts.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// Printed as the value of an option for a rank whose version of Weft does not have the option.
constexpr std::string_view kNothing = "not known";

std::string_view take_until(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

const Fact* find(const Facts& facts, const std::string& name) {
  const auto found =
      std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.name == name; });
  return found == facts.end() ? nullptr : &*found;
}

// Returns the ranks as words, for instance "rank 0", "ranks 1 to 3 and 7" or "ranks 0, 2, 4 and
// others".
std::string ranks_words(const std::vector<int>& ranks) {
  constexpr std::size_t kMostRuns = 4;
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    const std::string begin = std::to_string(ranks[i]);
    const char* joint = last == i + 1 ? " and " : " to ";
    runs.push_back(last == i ? begin : begin + joint + std::to_string(ranks[last]));
    i = last + 1;
  }
  if (runs.size() > kMostRuns) {
    runs.resize(kMostRuns);
    runs.push_back("others");
  }
  std::string words = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const char* before = i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ";
    words += before + runs[i];
  }
  return words;
}

// Describes one fact: each of its values, followed by the ranks that have it. The values are in the
// order of the lowest rank that has each.
std::string difference(const std::string& name, const std::vector<Facts>& of_ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> ranks_with;
  bool alike = true;
  const Fact* const first = find(of_ranks.front(), name);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const Fact* fact = find(of_ranks[rank], name);
    alike = alike && fact && first && fact->wire == first->wire;
    const std::string value = fact ? fact->value : std::string(kNothing);
    auto known = std::find_if(ranks_with.begin(), ranks_with.end(),
                              [&](const auto& one) { return one.first == value; });
    if (known == ranks_with.end()) known = ranks_with.insert(known, {value, {}});
    known->second.push_back(static_cast<int>(rank));
  }
  if (alike) return "";
  std::string words = name + " is ";
  for (std::size_t i = 0; i < ranks_with.size(); ++i) {
    const char* before = i == 0 ? "" : i + 1 == ranks_with.size() ? " and " : ", ";
    words += before + ranks_with[i].first + " on " + ranks_words(ranks_with[i].second);
  }
  return words;
}

}  // namespace

// Returns the FNV-1a hash over all names and `wire` values, reduced to 63 bits.
std::int64_t fingerprint(const Facts& facts) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const std::string& word) {
    for (const char c : word + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  };
  for (const Fact& fact : facts) {
    add(fact.name);
    add(fact.wire);
  }
  return static_cast<std::int64_t>(hash >> 1);
}

std::string text_of(const Facts& facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + '\t' + fact.value + '\t' + fact.wire + '\n';
  return text;
}

Facts facts_of(std::string_view text) {
  Facts facts;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    Fact fact;
    for (std::string* word : {&fact.name, &fact.value, &fact.wire}) *word = take_until(line, '\t');
    if (!fact.name.empty()) facts.push_back(std::move(fact));
  }
  return facts;
}

std::string differences(const std::vector<Facts>& of_ranks) {
  std::vector<std::string> names;
  for (const Facts& facts : of_ranks)
    for (const Fact& fact : facts)
      if (std::find(names.begin(), names.end(), fact.name) == names.end())
        names.push_back(fact.name);
  std::string words;
  for (const std::string& name : names) {
    const std::string one = difference(name, of_ranks);
    if (!one.empty()) words += (words.empty() ? "" : "; ") + one;
  }
  return words;
}

}  // namespace weft
