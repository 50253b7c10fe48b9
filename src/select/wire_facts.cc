// Not among the facts, since each rank may have its own: levels of split trees, transfers,
// watchdog, the files of reports, the cache of plans (one rank reads it and tells the others), the
// shared heap, XPMEM and copies by the kernel (ranks of a node agree on what they can do).
#include "select/wire_facts.h"

#include <cstdio>
#include <utility>

#include "coll/algorithm.h"

namespace weft {
namespace {

Fact fact(std::string name, const std::string& value) {
  return {std::move(name), value, value};
}

// Ranks tell each other algorithms by their places in the table.
Fact table_fact() {
  Facts lines;
  for (const Algorithm& algorithm : algorithms())
    lines.push_back(
        fact(kind_name(algorithm.kind),
             algorithm.name + (' ' + std::to_string(static_cast<int>(algorithm.needs)))));
  return fact("the table of algorithms", "no. " + std::to_string(fingerprint(lines) % 1'000'000));
}

const char* words_of(Config::Blocking blocking) {
  switch (blocking) {
    case Config::Blocking::by_rule:
      return "by the rule of engine auto";
    case Config::Blocking::always:
      return "on";
    case Config::Blocking::never:
      return "off";
  }
  return "";
}

const char* on_or_off(bool on) {
  return on ? "on" : "off";
}

std::string percent_words(double percent) {
  char words[32];
  std::snprintf(words, sizeof words, "%g%%", percent);
  return words;
}

// What a thread does after a poll is each rank's own affair; but those that pass a baton share a
// page, which their ranks make together.
Fact backoff_fact(const BackOff& backoff) {
  const char* const kind = backoff.kind == BackOff::Kind::baton ? "baton" : "another";
  return {"--backoff", kind, kind};
}

}  // namespace

// Both carry out Weft's rounds: by a thread or by callers, which is each rank's own affair.
Fact engine_fact(const std::string& name, Engine engine) {
  const bool rounds = engine == Engine::function || engine == Engine::thread;
  return {name, engine_name(engine), rounds ? "rounds" : engine_name(engine)};
}

// Where a thread goes is each rank's own affair; but ranks of a node ask each other before any goes
// elsewhere than where its rank runs.
Fact placement_fact(const std::string& name, const PlacementPolicy& placement) {
  const bool bound = placement.kind == PlacementPolicy::Kind::bind;
  return {name, placement_words(placement), bound ? "bind" : "elsewhere"};
}

Facts wire_facts(const Config& config) {
  Facts facts = {
      fact("the version of Weft", WEFT_VERSION),
      table_fact(),
      engine_fact("--engine", config.engine),
      fact("--blocking", words_of(config.blocking)),
      fact("--reproducible", on_or_off(config.reproducible)),
      fact("--learn", learn_word(config.learn)),
      fact("--learning-budget", percent_words(config.learning_budget)),
      fact("--transport", config.node_memory ? "auto" : "mpi"),
      fact("--init-budget", std::to_string(config.init_budget_us) + "us"),
      placement_fact("--placement", config.placement),
      backoff_fact(config.backoff),
      fact("--summary", on_or_off(config.summary || !config.summary_json_file.empty())),
      fact("--trace", on_or_off(!config.trace_file.empty())),
  };
  for (int i = 0; i < kKinds; ++i) {
    const std::string& asked = config.algorithm[static_cast<std::size_t>(i)];
    const std::string name = std::string("--algorithm ") + kind_name(static_cast<Kind>(i));
    facts.push_back(fact(name, asked.empty() ? "not given" : asked));
  }
  return facts;
}

}  // namespace weft
