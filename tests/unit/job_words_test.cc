// The text by which a job is recognised in later runs.
#include "select/job_words.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(JobWords, AProgramIsItsFile) {
  EXPECT_EQ(program_words({"/home/user/app", "-m", "input.py"}), "app");
  EXPECT_EQ(program_words({"app"}), "app");
  EXPECT_EQ(program_words({}), "");
}

TEST(JobWords, WhatPythonRunsIsItsScript) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {},
           {"-u"},
           {"-O", "-X", "dev"},
           {"-W", "error", "-u"},
           {"-BWerror", "-uX", "dev", "--check-hash-based-pycs", "never"},
           {"-Bm", "mpi4py"},
           {"-mmpi4py"},
           {"-m", "mpi4py"},
           {"-u", "-m", "mpi4py", "--profile", "mpe"},
           {"-m", "coverage", "run"}}) {
    std::vector<std::string> words = {"/usr/bin/python3"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"/home/user/a.py", "-n", "b.py"});
    EXPECT_EQ(program_words(words), "python3 a.py") << words[1];
  }
  EXPECT_EQ(program_words({"python3", "app", "in.py"}), "python3 app");
}

TEST(JobWords, ElseItIsTheModule) {
  EXPECT_EQ(program_words({"python3", "-m", "solver.run", "-n", "input.dat"}),
            "python3 solver.run");
  EXPECT_EQ(program_words({"python3", "-u", "-c", "import a", "b.py"}), "python3 -c");
  EXPECT_EQ(program_words({"python3", "-Bc", "import a", "b.py"}), "python3 -c");
  EXPECT_EQ(program_words({"python3", "-Bmsolver.run", "-n", "input.dat"}), "python3 solver.run");
  EXPECT_EQ(program_words({"python3", "-", "b.py"}), "python3 -");
  EXPECT_EQ(program_words({"python3", "-m"}), "python3");
  EXPECT_EQ(program_words({"python3"}), "python3");
}

TEST(JobWords, SettingsThatChangeTheBestWayAreSaid) {
  Config config;
  EXPECT_EQ(setting_words(config), "");
  config.placement = *parse_placement("list:3,5");
  config.backoff = *parse_backoff("sleep:50");
  config.split_levels = 2;
  config.one_copy = OneCopyUse::never;
  config.xpmem = "off";
  EXPECT_EQ(setting_words(config),
            ", placement list:3,5, backoff sleep:50, split 2, one-copy off, xpmem off");
}

}  // namespace
}  // namespace weft
