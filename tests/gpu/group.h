// Ranks in one process that share memory regions, like the ranks of an MPI communicator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ranks.h"

namespace weft::gpu {

struct Group {
  std::vector<std::shared_ptr<Peers>> peers;  // by rank; empty if the ranks have not agreed
  std::string why_not;
};

// Makes the ranks share their regions. before(rank) is called before each rank makes its offer.
Group meet_all(const std::vector<Runtime*>& runtimes, const Options& options,
               const std::function<void(int rank)>& before = {});

// Returns the first spot that is free on all ranks; -1 if there is none.
int common_spot(const Group& group);

// Returns the form that the rule chooses for the call, if there is room for all its blocks.
Form form_of(const OneKernelCall& call);

// Returns memory of each rank for two slots of `bytes` bytes, which all ranks have mapped.
std::vector<std::shared_ptr<SharedMemory>> shared_slots(const Group& group, std::size_t bytes);

Operation* add_by_kernel(Runtime* runtime, ByKernel by_kernel);

Operation* sum_by_kernel(Runtime* runtime, const Group& group, int rank, int spot,
                         const Buffer& from, const Buffer& to);

}  // namespace weft::gpu
