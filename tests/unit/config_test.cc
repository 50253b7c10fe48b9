// The values of environment variables and hints: which are understood, and that every error message
// lists the valid ones.
#include "base/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/options.h"

namespace weft {
namespace {

TEST(Config, EnginesByName) {
  for (const char* name : {"native", "assist", "function", "thread", "tcc", "agent", "auto"}) {
    const auto engine = parse_engine(name);
    ASSERT_TRUE(engine) << name;
    EXPECT_STREQ(engine_name(*engine), name);
  }
}

TEST(Config, RefusalsNameTheChoices) {
  EXPECT_NE(parse_engine("turbo").error().message.find("native, assist, function, thread, tcc"),
            std::string::npos);
  EXPECT_NE(parse_placement("moon").error().message.find("bind, numa, odd-even, pack:K, list:C"),
            std::string::npos);
  EXPECT_NE(parse_xpmem("on").error().message.find("auto, off or the path"), std::string::npos);
  EXPECT_NE(parse_one_copy("1").error().message.find("auto, on, off"), std::string::npos);
  EXPECT_NE(parse_learn("perhaps").error().message.find("on, use, off"), std::string::npos);
  EXPECT_NE(parse_backoff("nap").error().message.find("yield, spin, sleep:US"), std::string::npos);
}

TEST(Config, PlacementsWithNumbers) {
  EXPECT_EQ(parse_placement("pack:4")->threads_per_core, 4);
  EXPECT_EQ(parse_placement("list:3,1,7")->cores, (std::vector<int>{3, 1, 7}));
  for (const char* bad :
       {"pack:", "pack:0", "pack:two", "list:", "list:1,,2", "list:1,x", "list:-1"})
    EXPECT_FALSE(parse_placement(bad)) << bad;
}

TEST(Config, Durations) {
  EXPECT_EQ(*parse_duration("10ms", "it"), 10'000);
  EXPECT_EQ(*parse_duration("250us", "it"), 250);
  EXPECT_EQ(*parse_duration("2s", "it"), 2'000'000);
  EXPECT_EQ(*parse_duration("0", "it"), 0);
  EXPECT_EQ(*parse_duration("0ms", "it"), 0);
  for (const char* bad : {"", "10", "ms", "-1ms", "1.5ms", "10 ms", "10m"}) {
    const auto duration = parse_duration(bad, "the budget");
    ASSERT_FALSE(duration) << bad;
    EXPECT_EQ(duration.error().message.find("the budget is a time such as 10ms"), 0u);
  }
  const auto beyond = parse_duration("99999999999ms", "the budget");
  ASSERT_FALSE(beyond);
  EXPECT_NE(beyond.error().message.find("99999999999ms"), std::string::npos);
  EXPECT_EQ(beyond.error().message.find("the budget is a time such as"), std::string::npos);
}

TEST(Config, NumbersThatAreTooLargeNameTheLimit) {
  const std::string many(30, '9');
  for (const Error& error :
       {parse_duration("99999999999ms", "it").error(), parse_duration(many + "s", "it").error(),
        parse_transfers("2147483648").error(), parse_transfers(many).error(),
        parse_split(many).error(), parse_placement("pack:" + many).error()})
    EXPECT_NE(error.message.find("at most 2147483647"), std::string::npos) << error.message;
  EXPECT_EQ(parse_split("-" + many).error().message.find("at most"), std::string::npos);
}

TEST(Config, BackOffsWithNumbers) {
  EXPECT_EQ(parse_backoff("sleep:20")->sleep_us, 20);
  EXPECT_EQ(parse_backoff("baton")->kind, BackOff::Kind::quiet);
  for (const char* bad : {"sleep", "sleep:", "sleep:0", "sleep:1ms"})
    EXPECT_FALSE(parse_backoff(bad)) << bad;
}

TEST(Config, LevelsOfASplitTree) {
  EXPECT_EQ(*parse_split("auto"), Config::kByModel);
  EXPECT_EQ(*parse_split("3"), 3);
  for (const char* bad : {"", "-1", "1.5", "model"}) EXPECT_FALSE(parse_split(bad)) << bad;
}

TEST(Config, TransfersFromASizeOn) {
  EXPECT_EQ(*parse_transfers("auto"), 128 * 1024);
  EXPECT_EQ(*parse_transfers("off"), kNoTransfers);
  EXPECT_EQ(*parse_transfers("4096"), 4096);
  EXPECT_EQ(*parse_transfers("64KiB"), 64 * 1024);
  EXPECT_EQ(*parse_transfers("2MiB"), 2 * 1024 * 1024);
  for (const char* bad : {"", "0", "-1", "64K", "1 MiB", "KiB", "on", "1GiB"})
    EXPECT_FALSE(parse_transfers(bad)) << bad;
}

class ConfigEnvironment : public testing::Test {
 protected:
  void set(const char* name, const char* value) {
    setenv(name, value, 1);
    names_.push_back(name);
  }
  void TearDown() override {
    for (const char* name : names_) unsetenv(name);
  }

 private:
  std::vector<const char*> names_;
};

TEST_F(ConfigEnvironment, DefaultsAreTheRuleBesideTheRank) {
  const auto config = Config::from_environment();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine, Engine::automatic);
  EXPECT_EQ(config->placement.kind, PlacementPolicy::Kind::bind);
  EXPECT_EQ(config->backoff.kind, BackOff::Kind::quiet);
  EXPECT_FALSE(config->summary);
  EXPECT_EQ(config->init_budget_us, 10'000);
}

// Returns whether the table describes the option's default in words that are no valid value.
bool said_in_words(const Option& option) {
  const std::string_view text = option.default_value;
  return text == "off" || text.find(' ') != text.npos || text.find('~') != text.npos;
}

TEST_F(ConfigEnvironment, DefaultsAreThoseOfTheTableOfOptions) {
  const auto before = Config::from_environment();
  int named = 0;
  for (const Option& option : option_table()) {
    if (!*option.variable || said_in_words(option)) continue;
    set(option.variable, option.default_value);
    ++named;
  }
  EXPECT_GE(named, 6);
  const auto after = Config::from_environment();
  ASSERT_TRUE(before && after);
  EXPECT_EQ(*before, *after);
}

TEST_F(ConfigEnvironment, TakesEveryChoiceOfTheTableOfOptions) {
  for (const Option& option : option_table()) {
    for (std::string_view rest = option.choices; !rest.empty();) {
      const auto comma = std::min(rest.find(", "), rest.size());
      const std::string choice(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 2, rest.size()));
      // The choice contains a number that the user gives.
      if (choice.find(':') != choice.npos) continue;
      set(option.variable, choice.c_str());
      EXPECT_TRUE(Config::from_environment()) << option.name << " " << choice;
      unsetenv(option.variable);
    }
  }
}

TEST_F(ConfigEnvironment, PlansLieInTheUsersCacheDirectoryOrWhereItIsSaid) {
  const auto file = [] { return Config::from_environment()->plan_cache_file; };
  set("HOME", "/home/someone");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("WEFT_PLAN_CACHE");
  EXPECT_EQ(file(), "/home/someone/.cache/weft/plans");
  set("XDG_CACHE_HOME", "not absolute");
  EXPECT_EQ(file(), "/home/someone/.cache/weft/plans");
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(file(), "/cache/weft/plans");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(file(), "");
  set("WEFT_PLAN_CACHE", "here");
  EXPECT_EQ(file(), "here");
  for (const char* none : {"", "none"}) {
    set("WEFT_PLAN_CACHE", none);
    EXPECT_EQ(file(), "");
  }
}

TEST_F(ConfigEnvironment, ReadsEverything) {
  set("WEFT_ENGINE", "tcc");
  set("WEFT_PLACEMENT", "numa");
  set("WEFT_BACKOFF", "spin");
  set("WEFT_SUMMARY", "json:out.json");
  set("WEFT_TRACE", "trace.json");
  set("WEFT_INIT_BUDGET", "3ms");
  set("WEFT_LEARNING_BUDGET", "0.5%");
  set("WEFT_ALGORITHM_ALLREDUCE", "ring");
  const auto config = Config::from_environment();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine, Engine::tcc);
  EXPECT_EQ(config->placement.kind, PlacementPolicy::Kind::numa);
  EXPECT_EQ(config->backoff.kind, BackOff::Kind::spin);
  EXPECT_EQ(config->summary_json_file, "out.json");
  EXPECT_EQ(config->trace_file, "trace.json");
  EXPECT_EQ(config->init_budget_us, 3'000);
  EXPECT_EQ(config->learning_budget, 0.5);
  EXPECT_EQ(config->algorithm[static_cast<std::size_t>(Kind::allreduce)], "ring");
}

TEST_F(ConfigEnvironment, RefusesWhatItDoesNotKnow) {
  set("WEFT_ENGINE", "warp");
  EXPECT_FALSE(Config::from_environment());
}

TEST_F(ConfigEnvironment, RefusesAWrongSummary) {
  for (const char* wrong : {"loud", "json:"}) {
    set("WEFT_SUMMARY", wrong);
    EXPECT_FALSE(Config::from_environment()) << wrong;
  }
}

TEST_F(ConfigEnvironment, WatchdogIsWholeSeconds) {
  EXPECT_EQ(Config::from_environment()->watchdog_s, 0);
  set("WEFT_WATCHDOG", "30");
  EXPECT_EQ(Config::from_environment()->watchdog_s, 30);
  set("WEFT_WATCHDOG", "soon");
  EXPECT_FALSE(Config::from_environment());
}

TEST_F(ConfigEnvironment, IterationsAreAtLeastOne) {
  EXPECT_EQ(Config::from_environment()->iterations_at_a_time, 128);
  set("WEFT_LAPS", "2");
  EXPECT_EQ(Config::from_environment()->iterations_at_a_time, 2);
  for (const char* wrong : {"0", "-1", "all"}) {
    set("WEFT_LAPS", wrong);
    EXPECT_FALSE(Config::from_environment()) << wrong;
  }
}

TEST_F(ConfigEnvironment, TheBudgetOfLearningIsAShare) {
  for (const char* right : {"0", "1%", "2.5", "100"}) {
    set("WEFT_LEARNING_BUDGET", right);
    EXPECT_TRUE(Config::from_environment()) << right;
  }
  for (const char* wrong : {"", "much", "-1", "101", "1ms", "nan", "1%%"}) {
    set("WEFT_LEARNING_BUDGET", wrong);
    const auto config = Config::from_environment();
    ASSERT_FALSE(config) << wrong;
    EXPECT_EQ(config.error().message,
              "the budget of learning (WEFT_LEARNING_BUDGET) is a share in per cent such as 1, 0.5 "
              "or 0, and at most 100, not '" +
                  std::string(wrong) + "'");
  }
}

TEST_F(ConfigEnvironment, ReproducibleTakesTheBlockingOnesAndSchedules) {
  set("WEFT_REPRODUCIBLE", "1");
  ASSERT_TRUE(Config::from_environment());
  EXPECT_TRUE(Config::from_environment()->reproducible);
  EXPECT_EQ(Config::from_environment()->blocking, Config::Blocking::always);
  set("WEFT_BLOCKING", "0");
  EXPECT_FALSE(Config::from_environment());
  set("WEFT_BLOCKING", "");
  for (const char* engine : {"native", "tcc", "assist"}) {
    set("WEFT_ENGINE", engine);
    EXPECT_FALSE(Config::from_environment()) << engine;
  }
  set("WEFT_ENGINE", "thread");
  EXPECT_TRUE(Config::from_environment());
  set("WEFT_ALGORITHM_BCAST", "chain");
  EXPECT_TRUE(Config::from_environment());
  set("WEFT_ALGORITHM_ALLREDUCE", "ring");
  const auto config = Config::from_environment();
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("allreduce"), std::string::npos);
  set("WEFT_ALGORITHM_ALLREDUCE", "");
  set("WEFT_REPRODUCIBLE", "yes");
  EXPECT_FALSE(Config::from_environment());
}

}  // namespace
}  // namespace weft
