// Which rank a process has, according to the environment variables of launchers.
#include "base/first_rank.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace weft {
namespace {

constexpr const char* kVariables[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                      "SLURM_PROCID"};
constexpr const char* kOthers[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS",
                                   "SLURM_STEP_NUM_TASKS"};

class FirstRank : public testing::Test {
 protected:
  void TearDown() override { set({}); }
  static void set(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const char* name : kVariables) unsetenv(name);
    for (const char* name : kOthers) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
};

TEST_F(FirstRank, IsWhomTheLauncherCountsAsZero) {
  for (const char* name : kVariables) {
    set({{name, "0"}});
    EXPECT_TRUE(is_first_rank()) << name;
    set({{name, "10"}});
    EXPECT_FALSE(is_first_rank()) << name;
    EXPECT_STREQ(launched_rank(), "10");
  }
}

TEST_F(FirstRank, IsMpiexecsInsideAnAllocation) {
  set({{"SLURM_PROCID", "0"}, {"PMI_RANK", "3"}});
  EXPECT_FALSE(is_first_rank());
  set({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  EXPECT_FALSE(is_first_rank());
}

TEST_F(FirstRank, IsWhoeverIsStartedWithoutALauncher) {
  set({});
  EXPECT_EQ(launched_rank(), nullptr);
  EXPECT_TRUE(is_first_rank());
}

TEST_F(FirstRank, KnowsHowManyThereAre) {
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  EXPECT_EQ(launched_ranks(), 0) << "a batch script";
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    set({{name, "8"}});
    EXPECT_EQ(launched_ranks(), 8) << name;
  }
}

}  // namespace
}  // namespace weft
