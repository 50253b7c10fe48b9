// Reads info keys into Hints. Wrong values are reported and ignored.
#include "runtime/comm/hints.h"

#include <algorithm>

#include "base/hint_keys.h"
#include "base/log.h"
#include "base/options.h"
#include "coll/algorithm.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/comm/agreement.h"

namespace weft {
namespace {

std::optional<std::string> value_of(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1];
  int found = 0;
  if (library_calls.Info_get(info, key, MPI_MAX_INFO_VAL, value, &found) != MPI_SUCCESS || !found)
    return std::nullopt;
  return std::string(value);
}

void ignored(const char* key, const std::string& why) {
  say(std::string("communicator hint ") + key + ": " + why + "; the hint is ignored");
}

// Returns the parsed value of info key `key`; nullopt if the key is not set or its value is wrong.
template <class Value>
std::optional<Value> parsed(MPI_Info info, const char* key,
                            Result<Value> (*parse)(std::string_view)) {
  const auto text = value_of(info, key);
  if (!text) return std::nullopt;
  auto value = parse(*text);
  if (value) return *value;
  ignored(key, value.error().message);
  return std::nullopt;
}

// Stores the algorithm of one pair KIND=NAME in the hints. A wrong pair is reported and ignored.
void set_algorithm(std::string_view pair, Hints& hints) {
  const auto equals = pair.find('=');
  for (int i = 0; i < kKinds; ++i) {
    if (equals == std::string_view::npos || pair.substr(0, equals) != kind_name(Kind(i))) continue;
    const std::string_view name = pair.substr(equals + 1);
    if (find_algorithm(Kind(i), name))
      hints.algorithm[static_cast<std::size_t>(i)] = name;
    else
      ignored(kAlgorithmHint.key, "unknown algorithm '" + std::string(name) + "' for " +
                                      kind_name(Kind(i)) + " (weft schedule --list shows them)");
    return;
  }
  ignored(kAlgorithmHint.key,
          "KIND=NAME expected, for example allreduce=ring, not '" + std::string(pair) + "'");
}

void set_algorithms(std::string_view text, Hints& hints) {
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    set_algorithm(text.substr(0, comma), hints);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

Hints hints_of_this_rank(MPI_Info info) {
  Hints hints;
  if (info == handles.info_null) return hints;
  hints.engine = parsed(info, kEngineHint.key, parse_engine);
  hints.placement = parsed(info, kPlacementHint.key, parse_placement);
  if (const auto text = value_of(info, kAlgorithmHint.key)) set_algorithms(*text, hints);
  return hints;
}

// Returns those hints that determine which messages the ranks exchange, and on which the ranks must
// therefore agree.
Facts wire_facts(const Hints& hints) {
  const auto none = [](const char* key) { return Fact{key, "not given", ""}; };
  Facts facts = {hints.engine ? engine_fact(kEngineHint.key, *hints.engine) : none(kEngineHint.key),
                 hints.placement ? placement_fact(kPlacementHint.key, *hints.placement)
                                 : none(kPlacementHint.key)};
  for (int i = 0; i < kKinds; ++i) {
    const std::string& name = hints.algorithm[static_cast<std::size_t>(i)];
    const std::string key = std::string(kAlgorithmHint.key) + " for " + kind_name(Kind(i));
    if (name.empty())
      facts.push_back(none(key.c_str()));
    else
      facts.push_back({key, name, name});
  }
  return facts;
}

}  // namespace

bool Hints::any() const {
  return engine || placement ||
         std::any_of(algorithm.begin(), algorithm.end(), [](auto& name) { return !name.empty(); });
}

const std::string* Hints::algorithm_for(Kind kind) const {
  const std::string& name = algorithm[static_cast<std::size_t>(kind)];
  return name.empty() ? nullptr : &name;
}

Hints read_hints(MPI_Info info, MPI_Comm comm) {
  const Hints hints = hints_of_this_rank(info);
  const auto differing = disagreement(comm, wire_facts(hints));
  if (!differing) return hints;
  if (!differing->empty())
    say("hints on a communicator differ between its ranks: " + *differing +
        "; they are ignored, give all ranks the same");
  return {};
}

}  // namespace weft
