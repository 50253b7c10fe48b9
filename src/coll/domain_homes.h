// Assigns each rank's block to a rank of each NUMA domain: a rank's own domain keeps it with that
// rank, any other domain with the rank that has the same local rank there, modulo its size. So
// each domain has all blocks in its own memory, evenly divided among its ranks. With one domain
// every rank holds its own block.
#pragma once

#include <vector>

#include "schedule/nodes.h"

namespace weft {

class DomainHomes {
 public:
  DomainHomes(const Domains& domains, int ranks);

  struct Home {
    int rank;
    int index;  // among the blocks that it holds
  };
  const Home& of(int block, int domain) const {
    return homes_[static_cast<std::size_t>(domain)][static_cast<std::size_t>(block)];
  }
  // Returns the blocks that a rank holds, by index.
  const std::vector<int>& held_by(int rank) const { return held_[static_cast<std::size_t>(rank)]; }
  int most_held() const;  // by any rank

 private:
  std::vector<std::vector<Home>> homes_;  // by domain and block
  std::vector<std::vector<int>> held_;    // by rank
};

}  // namespace weft
