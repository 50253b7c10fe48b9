// DomainHomes: assigns each rank's block to one rank in every NUMA domain. In the rank's own domain
// that is the rank itself; in any other domain it is the rank with the same local rank modulo the
// domain's size. Each domain thus has all blocks in its own memory, evenly divided among its ranks.
// With one domain every rank holds its own block.
#pragma once

#include <vector>

#include "schedule/nodes.h"

namespace weft {

class DomainHomes {
 public:
  DomainHomes(const Domains& domains, int ranks);

  struct Home {
    int rank;
    int index;  // position among the blocks that the rank holds
  };
  const Home& of(int block, int domain) const {
    return homes_[static_cast<std::size_t>(domain)][static_cast<std::size_t>(block)];
  }
  // Returns the blocks that a rank holds, ordered by index.
  const std::vector<int>& held_by(int rank) const { return held_[static_cast<std::size_t>(rank)]; }
  int most_held() const;  // largest number of blocks that a rank holds

 private:
  std::vector<std::vector<Home>> homes_;  // rank for each domain and block
  std::vector<std::vector<int>> held_;    // blocks that each rank holds
};

}  // namespace weft
