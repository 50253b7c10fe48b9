// Implements DomainHomes: deals the blocks of other NUMA domains to the ranks of each domain, one
// after the other.
#include "coll/domain_homes.h"

#include <algorithm>

namespace weft {

DomainHomes::DomainHomes(const Domains& domains, int ranks)
    : homes_(static_cast<std::size_t>(domains.count())), held_(static_cast<std::size_t>(ranks)) {
  for (int domain = 0; domain < domains.count(); ++domain) {
    for (int block = 0; block < ranks; ++block) {
      const int local_rank = domains.local_rank(block) % domains.ranks_on(domain);
      const int home = domains.ranks(domain)[static_cast<std::size_t>(local_rank)];
      std::vector<int>& held = held_[static_cast<std::size_t>(home)];
      homes_[static_cast<std::size_t>(domain)].push_back({home, static_cast<int>(held.size())});
      held.push_back(block);
    }
  }
}

int DomainHomes::most_held() const {
  std::size_t most = 0;
  for (const std::vector<int>& blocks : held_) most = std::max(most, blocks.size());
  return static_cast<int>(most);
}

}  // namespace weft
