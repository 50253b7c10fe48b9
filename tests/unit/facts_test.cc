// The facts that ranks compare before they start, and the messages about differences.
#include "base/facts.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "select/wire_facts.h"

namespace weft {
namespace {

Facts one(const std::string& value) {
  return {{"--engine", value, value}};
}

TEST(Facts, SurviveTheWay) {
  const Facts facts = {{"--engine", "thread", "rounds"}, {"the version of Weft", "1.2", "1.2"}};
  EXPECT_EQ(facts_of(text_of(facts)), facts);
  EXPECT_EQ(facts_of(text_of(facts) + "\n\n\n"), facts);  // padded as in transit
  EXPECT_TRUE(facts_of("").empty());
}

TEST(Facts, HaveANumberThatIsTheSameForTheSameWires) {
  EXPECT_EQ(fingerprint({{"a", "x", "w"}}), fingerprint({{"a", "y", "w"}}));
  EXPECT_NE(fingerprint({{"a", "x", "w"}}), fingerprint({{"a", "x", "v"}}));
  EXPECT_NE(fingerprint({{"a", "x", "w"}}), fingerprint({{"b", "x", "w"}}));
  EXPECT_GE(fingerprint(one("tcc")), 0);
}

TEST(Facts, ThatAreAlikeDifferInNothing) {
  EXPECT_EQ(differences({one("tcc"), one("tcc")}), "");
  EXPECT_EQ(differences({{{"--engine", "thread", "rounds"}}, {{"--engine", "function", "rounds"}}}),
            "");
}

TEST(Facts, ThatDifferAreNamedWithTheirRanks) {
  EXPECT_EQ(differences({one("thread"), one("tcc")}),
            "--engine is thread on rank 0 and tcc on rank 1");
  EXPECT_EQ(differences({one("tcc"), one("auto"), one("auto"), one("auto"), one("tcc")}),
            "--engine is tcc on ranks 0 and 4 and auto on ranks 1 to 3");
  EXPECT_EQ(differences({one("a"), one("b"), one("c")}),
            "--engine is a on rank 0, b on rank 1 and c on rank 2");
}

TEST(Facts, OfManyRanksAreCutShort) {
  std::vector<Facts> ranks;
  for (int i = 0; i < 20; ++i) ranks.push_back(one(i % 2 ? "b" : "a"));
  EXPECT_EQ(differences(ranks),
            "--engine is a on ranks 0, 2, 4, 6 and others and b on ranks 1, 3, 5, 7 and others");
}

TEST(Facts, OfAnotherVersionMayBeMissing) {
  EXPECT_EQ(differences({{{"--engine", "tcc", "tcc"}, {"--new", "on", "on"}}, one("tcc")}),
            "--new is on on rank 0 and not known on rank 1");
}

std::string compared(const std::function<void(Config&)>& change) {
  Config other;
  change(other);
  return differences({wire_facts({}), wire_facts(other)});
}

TEST(WireFacts, AreTheOptionsThatDecideWhatTravels) {
  EXPECT_EQ(compared([](Config&) {}), "");
  EXPECT_EQ(compared([](Config& c) { c.engine = Engine::tcc; }),
            "--engine is auto on rank 0 and tcc on rank 1");
  EXPECT_NE(compared([](Config& c) { c.blocking = Config::Blocking::always; }), "");
  EXPECT_NE(compared([](Config& c) { c.reproducible = true; }), "");
  EXPECT_EQ(compared([](Config& c) { c.node_memory = false; }),
            "--transport is auto on rank 0 and mpi on rank 1");
  EXPECT_NE(compared([](Config& c) { c.init_budget_us = 0; }), "");
  EXPECT_EQ(compared([](Config& c) { c.learning_budget = 0.5; }),
            "--learning-budget is 1% on rank 0 and 0.5% on rank 1");
  EXPECT_NE(compared([](Config& c) { c.summary = true; }), "");
  EXPECT_NE(compared([](Config& c) { c.trace_file = "t.json"; }), "");
  EXPECT_EQ(
      compared([](Config& c) { c.algorithm[static_cast<std::size_t>(Kind::bcast)] = "binomial"; }),
      "--algorithm bcast is not given on rank 0 and binomial on rank 1");
  EXPECT_EQ(compared([](Config& c) { c.placement = *parse_placement("pack:2"); }),
            "--placement is bind on rank 0 and pack:2 on rank 1");
}

TEST(WireFacts, AreNotWhatEachRankMayHaveForItself) {
  EXPECT_EQ(compared([](Config& c) { c.backoff = *parse_backoff("spin"); }), "");
  EXPECT_EQ(compared([](Config& c) { c.watchdog_s = 3; }), "");
  EXPECT_EQ(compared([](Config& c) { c.plan_cache_file = "/elsewhere"; }), "");
  EXPECT_EQ(compared([](Config& c) { c.shared_heap_bytes = 4096; }), "");
  EXPECT_EQ(compared([](Config& c) { c.xpmem = "off"; }), "");
  EXPECT_EQ(compared([](Config& c) { c.one_copy = OneCopyUse::always; }), "");
  Config by_thread, by_callers;
  by_thread.engine = Engine::thread;
  by_callers.engine = Engine::function;
  EXPECT_EQ(differences({wire_facts(by_thread), wire_facts(by_callers)}), "");
  by_thread.placement = *parse_placement("list:1");
  by_callers.placement = *parse_placement("list:2");
  EXPECT_EQ(differences({wire_facts(by_thread), wire_facts(by_callers)}), "");
}

TEST(Placements, AreToldInTheWordsThatAskForThem) {
  for (const char* words : {"bind", "numa", "odd-even", "pack:3", "list:0,2,5"})
    EXPECT_EQ(placement_words(*parse_placement(words)), words);
}

}  // namespace
}  // namespace weft
