// Ranks, node by node.
#include "schedule/nodes.h"

#include <algorithm>
#include <map>

namespace weft {

Nodes::Nodes(const std::vector<int>& node_of_rank) {
  std::map<int, int> numbers;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [found, is_new] = numbers.try_emplace(node_of_rank[rank], count());
    if (is_new) ranks_.emplace_back();
    std::vector<int>& here = ranks_[static_cast<std::size_t>(found->second)];
    homes_.push_back({found->second, static_cast<int>(here.size())});
    here.push_back(static_cast<int>(rank));
  }
}

bool Nodes::some_share() const {
  return homes_.size() > ranks_.size();
}

bool Nodes::all_alike() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [&](const auto& ranks) { return ranks.size() == ranks_[0].size(); });
}

bool Nodes::are_in_order() const {
  return std::is_sorted(homes_.begin(), homes_.end(),
                        [](const Home& one, const Home& other) { return one.node < other.node; });
}

}  // namespace weft
