// Whether a job runs on one node, according to the environment variables of launchers.
#include "topo/job.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace weft {
namespace {

bool one_node(const std::map<std::string, std::string>& set) {
  return on_one_node([&](const char* name) {
    const auto it = set.find(name);
    return it == set.end() ? nullptr : it->second.c_str();
  });
}

TEST(OnOneNode, WhereAllRanksOfHydraAreLocal) {
  EXPECT_TRUE(one_node({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}}));
  EXPECT_FALSE(one_node({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}}));
}

TEST(OnOneNode, WhereAllRanksOfOpenMpiAreLocal) {
  EXPECT_TRUE(one_node({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}));
  EXPECT_FALSE(one_node({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
}

TEST(OnOneNode, WhereSrunsStepHasOne) {
  EXPECT_TRUE(one_node({{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_NNODES", "8"}}));
  EXPECT_FALSE(one_node({{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_NNODES", "8"}}));
  EXPECT_TRUE(one_node({{"SLURM_NNODES", "1"}}));
  EXPECT_FALSE(one_node({{"SLURM_NNODES", "1"}, {"SLURM_HET_SIZE", "2"}}));
}

TEST(OnOneNode, HydraKnowsItsJobInsideAnAllocation) {
  EXPECT_TRUE(one_node({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}, {"SLURM_NNODES", "4"}}));
  EXPECT_FALSE(one_node({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}, {"SLURM_NNODES", "1"}}));
}

TEST(OnOneNode, NotWhereNobodySaysSo) {
  EXPECT_FALSE(one_node({}));
  EXPECT_FALSE(one_node({{"PMI_SIZE", "1"}}));
}

}  // namespace
}  // namespace weft
