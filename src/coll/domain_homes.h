// DomainHomes: in every NUMA domain, one rank holds the block of any given rank in its memory. In
// the given rank's own domain that is the rank itself. In any other domain it is the rank with the
// same local rank modulo the number of ranks there. Each domain thus has all blocks in its own
// memory, evenly divided among its ranks. With one domain every rank holds its own block.
#pragma once

#include <vector>

#include "schedule/nodes.h"

namespace weft {

class DomainHomes {
 public:
  DomainHomes(const Domains& domains, int ranks);

  struct Home {
    int rank;
    int index;  // number of the block among those that the rank holds
  };
  const Home& of(int block, int domain) const {
    return homes_[static_cast<std::size_t>(domain)][static_cast<std::size_t>(block)];
  }
  // Returns the blocks that a rank holds, in the order of Home::index.
  const std::vector<int>& held_by(int rank) const { return held_[static_cast<std::size_t>(rank)]; }
  int most_held() const;  // largest number of blocks that any rank holds

 private:
  // The rank that holds a block, indexed by domain and block.
  std::vector<std::vector<Home>> homes_;
  std::vector<std::vector<int>> held_;  // the blocks that a rank holds, indexed by rank
};

}  // namespace weft
