// Lists the options on which all ranks of a job must agree. The table of options says what each
// option adds to the list.
#include "select/wire_facts.h"

#include <utility>

#include "base/options.h"
#include "coll/algorithm.h"

namespace weft {
namespace {

Fact fact(std::string name, const std::string& value) {
  return {std::move(name), value, value};
}

// Returns the fact that stands for the table of algorithms. Ranks refer to algorithms by their
// index in that table, so all must have the same table.
Fact table_fact() {
  Facts lines;
  for (const Algorithm& algorithm : algorithms())
    lines.push_back(
        fact(kind_name(algorithm.kind),
             algorithm.name + (' ' + std::to_string(static_cast<int>(algorithm.needs)))));
  return fact("the table of algorithms", "no. " + std::to_string(fingerprint(lines) % 1'000'000));
}

}  // namespace

Facts wire_facts(const Config& config) {
  Facts facts = {fact("the version of Weft", WEFT_VERSION), table_fact()};
  for (const Option& option : option_table())
    if (option.fact) facts.push_back(option.fact(config));
  for (int i = 0; i < kKinds; ++i) {
    const std::string& asked = config.algorithm[static_cast<std::size_t>(i)];
    const std::string name = std::string("--algorithm ") + kind_name(static_cast<Kind>(i));
    facts.push_back(fact(name, asked.empty() ? "not given" : asked));
  }
  return facts;
}

}  // namespace weft
