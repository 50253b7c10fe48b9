// Ranks of one process that share their regions of memory, as an MPI communicator's do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ranks.h"

namespace weft::gpu {

struct Group {
  std::vector<std::shared_ptr<Peers>> peers;  // by rank; empty: not agreed
  std::string why_not;
};

// before: is called for each rank ahead of its offer.
Group meet_all(const std::vector<Runtime*>& runtimes, const Options& options,
               const std::function<void(int rank)>& before = {});

// The first spot that is free on all ranks; -1: none.
int common_spot(const Group& group);

Operation* add_by_kernel(Runtime* runtime, ByKernel by_kernel);

Operation* sum_by_kernel(Runtime* runtime, const Group& group, int rank, int spot,
                         const Buffer& from, const Buffer& to);

}  // namespace weft::gpu
