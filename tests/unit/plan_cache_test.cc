// The file of plans: what one process writes, the next one finds, whatever else is in the file and
// whoever else writes it.
#include "select/plan_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/config.h"

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

// Writes a plan as a process does that measures it and ends.
void put(PlanCache& cache, const std::string& key, const MeasuredPlan& plan) {
  cache.note(key, plan);
  cache.write(cache.take_lines());
}
void put(const std::filesystem::path& file, const std::string& key, const MeasuredPlan& plan) {
  PlanCache cache(file);
  put(cache, key, plan);
}

// Returns the plan without doubts, as find() returns it in the process that measured it.
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
    std::filesystem::create_directories(file_.parent_path());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& text) { std::ofstream(file_) << text; }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  std::string aside(const std::string& more = "") const {
    std::ostringstream text;
    text << std::ifstream(file_.string() + ".aside" + more).rdbuf();
    return text.str();
  }
  // Returns what rank 0 prints about the file in MPI_Init.
  std::string said_of(PlanCache& cache) const {
    testing::internal::CaptureStderr();
    cache.read();
    return testing::internal::GetCapturedStderr();
  }
  std::string sentence(const std::string& fault, const std::string& becomes) const {
    return "weft: the file of plans " + file_.string() + " " + fault + ": it is kept as " +
           file_.string() + ".aside, and " + becomes + "\n";
  }
  // Returns the number of files in the directory, where nothing temporary may be left.
  long entries() const {
    return std::distance(std::filesystem::directory_iterator(file_.parent_path()), {});
  }

  std::filesystem::path directory_, file_;
};

TEST_F(PlanCacheFile, KeepsPlansForTheNextProcess) {
  PlanCache cache(file_);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  put(cache, "a", kPlan);
  put(cache, "a|b", kOther);
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
  put(file_, "a", kRemarked);
  put(file_, "b", kOther);  // reads the file and writes all of it again
  EXPECT_EQ(PlanCache(file_).find("a"), kRemarked);
  EXPECT_EQ(PlanCache(file_).find("b"), kOther);
}

TEST_F(PlanCacheFile, FindsAllWithAPrefix) {
  put(file_, "app|a", kPlan);
  put(file_, "app|b", kOther);
  put(file_, "other|app|a", kOther);
  PlanCache cache(file_);
  const auto found = cache.with_prefix("app|");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], std::pair(std::string("app|a"), kPlan));
  EXPECT_EQ(found[1], std::pair(std::string("app|b"), kOther));
  EXPECT_TRUE(cache.with_prefix("none|").empty());
}

TEST_F(PlanCacheFile, IsReadOnce) {
  put(file_, "a", kPlan);
  PlanCache cache(file_);
  cache.read();
  std::filesystem::remove(file_);
  EXPECT_EQ(cache.find("a"), kPlan);
  put(file_, "a", kOther);
  cache.read();
  EXPECT_EQ(cache.find("a"), kPlan);
}

TEST_F(PlanCacheFile, TheLaterPlanReplacesTheEarlierOne) {
  put(file_, "a", kPlan);
  put(file_, "a", kOther);
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
  put(cache, "a", kPlan);
  EXPECT_EQ(cache.find("a"), without_doubts(kPlan));
}

TEST_F(PlanCacheFile, DamagedLinesHarmNoOther) {
  put(file_, "good", kPlan);
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
  const std::string damaged = read();
  EXPECT_EQ(said_of(cache), sentence("has 10 damaged lines", "its other lines hold"));
  EXPECT_EQ(aside(), damaged);
  EXPECT_EQ(PlanCache(file_).find("good"), kPlan);
  EXPECT_EQ(cache.find("good"), kPlan);
  PlanCache next(file_);
  EXPECT_EQ(said_of(next), "");
  put(cache, "torn", kOther);
  EXPECT_EQ(PlanCache(file_).find("torn"), kOther);
  EXPECT_EQ(PlanCache(file_).find("good"), kPlan);
  const std::string text = read();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);  // the damaged lines are gone
}

TEST_F(PlanCacheFile, EmptyLinesAndRemarksAreNoDamage) {
  put(file_, "a", kPlan);
  std::ofstream(file_, std::ios::app) << "\n# mine\n\n";
  PlanCache cache(file_);
  EXPECT_EQ(said_of(cache), "");
  EXPECT_EQ(cache.find("a"), kPlan);
  EXPECT_EQ(entries(), 1);
}

TEST_F(PlanCacheFile, WhatIsNoCacheIsKeptAside) {
  const std::string long_one = "# weft plans, version 4\n" + std::string((16 << 20) + 1, '#');
  for (const auto& [text, fault] :
       {std::pair<std::string, std::string>{"# weft plans, version 5\na\tb\t1\tb/1=1\n",
                                            "is of another Weft"},
        {long_one, "is longer than 16 MiB"}}) {
    write(text);
    PlanCache cache(file_);
    EXPECT_EQ(cache.find("a"), std::nullopt);
    EXPECT_TRUE(read() == text);  // the file stays as it is until rank 0 has read it
    EXPECT_EQ(said_of(cache), sentence(fault, "a new one is begun"));
    EXPECT_TRUE(aside() == text);
    EXPECT_EQ(read(), "# weft plans, version 4\n");
    put(cache, "a", kOther);
    EXPECT_EQ(PlanCache(file_).find("a"), kOther);
    EXPECT_EQ(entries(), 2);
    std::filesystem::remove(file_.string() + ".aside");
  }
}

// Whichever process writes first moves the file aside and says so, even before rank 0 has read it.
TEST_F(PlanCacheFile, WhoeverMovesTheFileAsideSaysSo) {
  write("# weft plans, version 5\n");
  testing::internal::CaptureStderr();
  put(file_, "a", kOther);
  put(file_, "b", kPlan);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            sentence("is of another Weft", "a new one is begun"));
  EXPECT_EQ(aside(), "# weft plans, version 5\n");
  EXPECT_EQ(PlanCache(file_).find("a"), kOther);
  EXPECT_EQ(PlanCache(file_).find("b"), kPlan);
}

TEST_F(PlanCacheFile, WhatIsNothingOfWeftsStays) {
  for (const std::string& text :
       {std::string("dear diary\n"), std::string((16 << 20) + 1, '#'), std::string("#")}) {
    write(text);
    PlanCache cache(file_);
    EXPECT_NE(said_of(cache).find("it stays there, and no plans are kept"), std::string::npos);
    put(cache, "a", kOther);
    EXPECT_TRUE(read() == text);
    EXPECT_EQ(entries(), 1);
  }
}

TEST_F(PlanCacheFile, NothingThatIsKeptAsideIsReplaced) {
  for (int i = 1; i <= 9; ++i) {
    write("# weft plans, diary " + std::to_string(i));
    PlanCache cache(file_);
    EXPECT_NE(said_of(cache), "");
    EXPECT_EQ(aside(i > 1 ? std::to_string(i) : ""), "# weft plans, diary " + std::to_string(i));
  }
  write("# weft plans, diary 10");
  PlanCache cache(file_);
  const std::string said = said_of(cache);
  EXPECT_NE(said.find("it stays there (File exists), and no plans are kept"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  testing::internal::CaptureStderr();
  put(cache, "a", kOther);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // the message is printed only once
  EXPECT_EQ(cache.find("a"), without_doubts(kOther));
  EXPECT_EQ(read(), "# weft plans, diary 10");
  EXPECT_EQ(entries(), 10);
}

const std::string kOwnKey = "weft " WEFT_VERSION "|AMD|4 ranks";

// Writing the file drops lines of other versions, but keeps those of other machines.
TEST_F(PlanCacheFile, LinesOfOtherVersionsGoWhenItIsWritten) {
  put(file_, kOwnKey, kPlan);
  put(file_, "weft " WEFT_VERSION "|Intel|4 ranks", kPlan);
  const std::string own = read();
  std::string others = own.substr(own.find('\n') + 1);
  for (const char* version : {"weft 0|", "weft " WEFT_VERSION "1|", "weft |"}) {
    std::string more = others;
    for (auto at = more.find("weft "); at != std::string::npos; at = more.find("weft ", at + 1))
      more.replace(at, more.find('|', at) + 1 - at, version);
    std::ofstream(file_, std::ios::app) << more;
  }
  PlanCache cache(file_);
  EXPECT_EQ(said_of(cache), "");
  EXPECT_EQ(cache.with_prefix("weft ").size(), 8u);
  testing::internal::CaptureStderr();
  put(cache, "weft " WEFT_VERSION "|AMD|2 ranks", kOther);
  put(cache, "weft " WEFT_VERSION "|AMD|3 ranks", kOther);
  const std::string said = testing::internal::GetCapturedStderr();  // contains the message once
  EXPECT_NE(said.find(" had 6 lines of other versions of Weft"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  PlanCache next(file_);
  EXPECT_EQ(next.with_prefix("weft ").size(), 4u);
  EXPECT_EQ(next.with_prefix("weft " WEFT_VERSION "|").size(), 4u);
  EXPECT_EQ(next.find(kOwnKey), kPlan);
}

TEST_F(PlanCacheFile, PlansOfEarlierVersionsAreMeasuredAnew) {
  for (const std::string text :
       {"# weft plans, version 1\na\tnode-flat\t65536\tnode-flat/65536=1,node-ring/65536=2\n",
        "# weft plans, version 2\na\tnode-flat/65536/4/0\tnode-flat/65536/4/0=1\n"}) {
    write(text);
    PlanCache cache(file_);
    EXPECT_EQ(cache.find("a"), std::nullopt);
    put(cache, "b", kPlan);
    EXPECT_EQ(PlanCache(file_).find("b"), kPlan);
    EXPECT_EQ(read().find("=1"), std::string::npos);
  }
}

TEST_F(PlanCacheFile, WhatCannotBeAFileIsNoError) {
  std::filesystem::create_directories(file_.parent_path());
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  put(file_, "a", kPlan);
  EXPECT_EQ(PlanCache(file_).find("a"), std::nullopt);
  EXPECT_TRUE(std::filesystem::is_fifo(file_));
  put(std::filesystem::path("/proc/no/such/place"), "a", kPlan);
  put(directory_, "a", kPlan);
  EXPECT_TRUE(std::filesystem::is_directory(directory_));
  PlanCache cache(file_);
  const std::string said = said_of(cache);
  EXPECT_NE(said.find("is no regular file: it stays there, and no plans are kept"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_fifo(file_));
}

TEST_F(PlanCacheFile, MakesNoDirectoriesButThoseOfTheUsersCache) {
  put(directory_ / "none" / "plans", "a", kPlan);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "none"));
  const std::string cache = directory_ / "cache";
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const std::string file = default_plan_cache();
  put(std::filesystem::path(file), "a", kPlan);
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(PlanCache(file).find("a"), kPlan);
}

TEST_F(PlanCacheFile, WritersAtTheSameTimeLoseNothingThatWasWritten) {
  constexpr int kWriters = 8, kPlans = 10;
  for (int writer = 0; writer < kWriters; ++writer) {
    if (fork() != 0) continue;
    for (int i = 0; i < kPlans; ++i) {
      const std::string key = std::to_string(writer) + "|" + std::to_string(i);
      while (PlanCache(file_).find(key) != kPlan) put(file_, key, kPlan);
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

TEST_F(PlanCacheFile, WritesWhatSeveralProcessesHaveNoted) {
  put(file_, "b", kPlan);
  put(file_, "c", kPlan);
  PlanCache one(file_), other(file_);
  one.note("a", kOther);
  one.note("b", kOther);
  other.note("a", kPlan);
  EXPECT_EQ(PlanCache(file_).find("a"), std::nullopt);
  one.write(one.take_lines() + other.take_lines({{"learnt", kRemarked}}));
  PlanCache cache(file_);
  EXPECT_EQ(cache.find("a"), kPlan);  // the last plan that was written counts
  EXPECT_EQ(cache.find("b"), kOther);
  EXPECT_EQ(cache.find("c"), kPlan);
  EXPECT_EQ(cache.find("learnt"), kRemarked);
  const std::string text = read();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_EQ(one.take_lines(), "");  // nothing is written twice
  const auto written = std::filesystem::last_write_time(file_);
  one.write(one.take_lines());
  EXPECT_EQ(std::filesystem::last_write_time(file_), written);
}

TEST_F(PlanCacheFile, WithoutAFileThereIsNothingToWrite) {
  PlanCache cache("");
  cache.note("a", kPlan);
  EXPECT_EQ(cache.find("a"), without_doubts(kPlan));
  EXPECT_EQ(cache.take_lines({{"b", kPlan}}), "");
  EXPECT_FALSE(cache.write("").is_kept);
}

TEST_F(PlanCacheFile, WhatCannotBeWrittenIsSaidWithItsReason) {
  const auto why_not = [](const std::filesystem::path& file) {
    PlanCache cache(file);
    cache.note("a", kPlan);
    const PlanCache::Written written = cache.write(cache.take_lines());
    EXPECT_EQ(written.is_kept, written.why.empty());
    return written.why;
  };
  const auto sentence = [](const std::string& file, const std::string& reason) {
    return "what this run has measured and learnt is not kept: " + file + " cannot be written (" +
           reason + "); name another file with --plan-cache, or none";
  };
  const std::string nowhere = "/proc/weft-plans", in_a_file = file_ / "plans";
  EXPECT_EQ(why_not(file_), "");
  EXPECT_EQ(why_not(nowhere), sentence(nowhere, "No such file or directory"));
  EXPECT_EQ(why_not(in_a_file), sentence(in_a_file, "Not a directory"));
}

// Several processes write once each, while another one holds the lock for a while.
TEST_F(PlanCacheFile, WritersWaitForEachOther) {
  constexpr int kWriters = 8;
  put(file_, "before", kPlan);
  const int directory = open(file_.parent_path().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(directory, LOCK_EX), 0);
  for (int writer = 0; writer < kWriters; ++writer) {
    if (fork() != 0) continue;
    close(directory);  // the child must not hold its parent's lock
    PlanCache own(file_);
    own.note(std::to_string(writer), kPlan);
    own.write(own.take_lines({{"x" + std::to_string(writer), kOther}}));
    _exit(0);
  }
  usleep(100'000);
  flock(directory, LOCK_UN);
  close(directory);
  while (wait(nullptr) > 0) {
  }
  PlanCache cache(file_);
  EXPECT_EQ(cache.find("before"), kPlan);
  for (int writer = 0; writer < kWriters; ++writer) {
    EXPECT_EQ(cache.find(std::to_string(writer)), kPlan);
    EXPECT_EQ(cache.find("x" + std::to_string(writer)), kOther);
  }
  EXPECT_EQ(entries(), 1);
}

TEST(PlanKey, SaysHowManyRanksAreOnEachNode) {
  EXPECT_EQ(layout_words(Nodes({0, 0, 1, 1})), "2 nodes, 2 each");
  EXPECT_EQ(layout_words(Nodes({0, 0, 0, 1})), "2 nodes, 3+1");
  EXPECT_EQ(layout_words(Nodes({0, 1, 1, 1})), "2 nodes, 3+1");
  EXPECT_EQ(layout_words(Nodes({0, 0, 1, 2, 2, 3})), "4 nodes, 2x2+2x1");
  EXPECT_EQ(layout_words(Nodes({0, 1, 0, 1})), "2 nodes, 2 each, not in order");
}

TEST(PlanKey, HoldsNothingThatEndsIt) {
  EXPECT_EQ(plan_key({"weft 1", "AMD|EPYC\n7", "\tx"}), "weft 1|AMD EPYC 7| x");
}

}  // namespace
}  // namespace weft
