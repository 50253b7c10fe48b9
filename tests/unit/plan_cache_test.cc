// The file of plans: what is put is found, also by the next process, whatever else is in the file
// and whoever else writes it.
#include "select/plan_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft {
namespace {

const MeasuredPlan kPlan{"domain-tree",
                         {16384, 8, 2},
                         {{"node-flat", {65536, 4, 0}, 900}, {"domain-tree", {16384, 8, 2}, 700}},
                         2};
const MeasuredPlan kOther{
    "node-flat", {65536, 4, 0}, {{"node-flat", {65536, 4, 0}, 5}, {"node-ring", {65536, 4, 0}, 6}}};

const MeasuredPlan kRemarked{
    "node-flat", {65536, 4, 0}, {{"node-flat", {65536, 4, 0}, 5}}, 1, "trials=18 cost_ns=7"};

// As the process that measured it has it.
MeasuredPlan without_doubts(MeasuredPlan plan) {
  plan.doubts = 0;
  return plan;
}

class PlanCacheFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/plans.XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    directory_ = name;
    file_ = directory_ / "a/b/plans";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& text) {
    std::filesystem::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  // Alone in its directory: nothing temporary is left.
  long entries() const {
    return std::distance(std::filesystem::directory_iterator(file_.parent_path()), {});
  }

  std::filesystem::path directory_, file_;
};

TEST_F(PlanCacheFile, KeepsPlansForTheNextProcess) {
  PlanCache cache(file_);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  cache.put("a", kPlan);
  cache.put("a|b", kOther);
  EXPECT_EQ(cache.find("a"), without_doubts(kPlan));
  EXPECT_EQ(cache.find("a|b"), kOther);
  PlanCache next(file_);
  EXPECT_EQ(next.find("a"), kPlan);
  EXPECT_EQ(next.find("a|b"), kOther);
  EXPECT_EQ(next.find("b"), std::nullopt);
  EXPECT_EQ(next.find(""), std::nullopt);
  EXPECT_EQ(entries(), 1);
}

TEST_F(PlanCacheFile, KeepsRemarks) {
  PlanCache(file_).put("a", kRemarked);
  PlanCache(file_).put("b", kOther);  // reads the file, and writes all of it again
  EXPECT_EQ(PlanCache(file_).find("a"), kRemarked);
  EXPECT_EQ(PlanCache(file_).find("b"), kOther);
}

TEST_F(PlanCacheFile, FindsAllWithAPrefix) {
  PlanCache(file_).put("app|a", kPlan);
  PlanCache(file_).put("app|b", kOther);
  PlanCache(file_).put("other|app|a", kOther);
  PlanCache cache(file_);
  const auto found = cache.with_prefix("app|");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], std::pair(std::string("app|a"), kPlan));
  EXPECT_EQ(found[1], std::pair(std::string("app|b"), kOther));
  EXPECT_TRUE(cache.with_prefix("none|").empty());
}

TEST_F(PlanCacheFile, IsReadOnce) {
  PlanCache(file_).put("a", kPlan);
  PlanCache cache(file_);
  cache.read();
  std::filesystem::remove(file_);
  EXPECT_EQ(cache.find("a"), kPlan);
  PlanCache(file_).put("a", kOther);
  cache.read();
  EXPECT_EQ(cache.find("a"), kPlan);
}

TEST_F(PlanCacheFile, TheLaterPlanReplacesTheEarlierOne) {
  PlanCache(file_).put("a", kPlan);
  PlanCache(file_).put("a", kOther);
  EXPECT_EQ(PlanCache(file_).find("a"), kOther);
  EXPECT_EQ(read().find("domain-tree"), std::string::npos);
}

TEST_F(PlanCacheFile, WhatIsRememberedOnlyIsNotWritten) {
  PlanCache cache(file_);
  cache.remember("a", kPlan);
  EXPECT_EQ(cache.find("a"), kPlan);
  EXPECT_EQ(PlanCache(file_).find("a"), std::nullopt);
}

TEST_F(PlanCacheFile, WithoutAFileThereIsMemory) {
  PlanCache cache("");
  cache.put("a", kPlan);
  EXPECT_EQ(cache.find("a"), without_doubts(kPlan));
}

TEST_F(PlanCacheFile, DamagedLinesHarmNoOther) {
  PlanCache(file_).put("good", kPlan);
  std::ofstream(file_, std::ios::app) << "bad\n"
                                         "cut\tnode-ring/16384/4/0\t0\n"
                                         "size\tnode-ring/much/4/0\t0\tnode-ring/16384/4/0=7\n"
                                         "radix\tnode-ring/16384/4\t0\tnode-ring/16384/4/0=7\n"
                                         "doubts\tnode-ring/16384/4/0\tnode-ring/16384/4/0=7\n"
                                         "time\tnode-ring/16384/4/0\t0\tnode-ring/16384/4/0=\n"
                                         "sign\tnode-ring/16384/4/0\t0\tnode-ring/16384/4/0=-7\n"
                                         "nameless\t/16384/4/0\t0\tnode-ring/16384/4/0=7\n"
                                         "\n\t\t\t\n"
                                         "torn\tnode-ring/163";
  PlanCache cache(file_);
  EXPECT_EQ(cache.find("good"), kPlan);
  for (const char* key :
       {"bad", "cut", "size", "radix", "doubts", "time", "sign", "nameless", "", "torn"})
    EXPECT_EQ(cache.find(key), std::nullopt) << key;
  cache.put("torn", kOther);
  EXPECT_EQ(PlanCache(file_).find("torn"), kOther);
  EXPECT_EQ(PlanCache(file_).find("good"), kPlan);
  const std::string text = read();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);  // the damage is gone
}

TEST_F(PlanCacheFile, AFileThatIsNoCacheStaysAsItIs) {
  for (const std::string text : {"dear diary\n", "# weft plans, version 5\na\tb\t1\tb/1=1\n"}) {
    write(text);
    PlanCache cache(file_);
    cache.put("a", kOther);
    EXPECT_EQ(cache.find("a"), kOther);
    EXPECT_EQ(read(), text);
  }
}

TEST_F(PlanCacheFile, PlansOfEarlierVersionsAreMeasuredAnew) {
  for (const std::string text :
       {"# weft plans, version 1\na\tnode-flat\t65536\tnode-flat/65536=1,node-ring/65536=2\n",
        "# weft plans, version 2\na\tnode-flat/65536/4/0\tnode-flat/65536/4/0=1\n"}) {
    write(text);
    PlanCache cache(file_);
    EXPECT_EQ(cache.find("a"), std::nullopt);
    cache.put("b", kPlan);
    EXPECT_EQ(PlanCache(file_).find("b"), kPlan);
    EXPECT_EQ(read().find("=1"), std::string::npos);
  }
}

TEST_F(PlanCacheFile, WhatCannotBeAFileIsNoError) {
  std::filesystem::create_directories(file_.parent_path());
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  PlanCache(file_).put("a", kPlan);
  EXPECT_EQ(PlanCache(file_).find("a"), std::nullopt);
  EXPECT_TRUE(std::filesystem::is_fifo(file_));
  PlanCache("/proc/no/such/place").put("a", kPlan);
  PlanCache(directory_).put("a", kPlan);
  EXPECT_TRUE(std::filesystem::is_directory(directory_));
}

TEST_F(PlanCacheFile, WritersAtTheSameTimeLoseNothingThatWasWritten) {
  constexpr int kWriters = 8, kPlans = 10;
  for (int writer = 0; writer < kWriters; ++writer) {
    if (fork() != 0) continue;
    for (int i = 0; i < kPlans; ++i) {
      const std::string key = std::to_string(writer) + "|" + std::to_string(i);
      while (PlanCache(file_).find(key) != kPlan) PlanCache(file_).put(key, kPlan);
    }
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  PlanCache cache(file_);
  for (int writer = 0; writer < kWriters; ++writer)
    for (int i = 0; i < kPlans; ++i)
      EXPECT_EQ(cache.find(std::to_string(writer) + "|" + std::to_string(i)), kPlan);
  EXPECT_EQ(entries(), 1);
}

TEST(PlanKey, HoldsNothingThatEndsIt) {
  EXPECT_EQ(plan_key({"weft 1", "AMD|EPYC\n7", "\tx"}), "weft 1|AMD EPYC 7| x");
}

}  // namespace
}  // namespace weft
