// Ranks, node by node.
#include "schedule/nodes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft {

Nodes::Nodes(const std::vector<int>& node_of_rank, const std::vector<int>& domain_of_rank)
    : homes_(node_of_rank.size()) {
  std::map<int, int> numbers;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [found, is_new] = numbers.try_emplace(node_of_rank[rank], count());
    if (is_new) ranks_.emplace_back();
    ranks_[static_cast<std::size_t>(found->second)].push_back(static_cast<int>(rank));
  }
  const auto is_nearer = [&](int one, int other) {
    return domain_of_rank[static_cast<std::size_t>(one)] <
           domain_of_rank[static_cast<std::size_t>(other)];
  };
  for (int node = 0; node < count(); ++node) {
    std::vector<int>& here = ranks_[static_cast<std::size_t>(node)];
    if (!domain_of_rank.empty()) std::stable_sort(here.begin(), here.end(), is_nearer);
    for (int place = 0; place < ranks_on(node); ++place)
      homes_[static_cast<std::size_t>(here[static_cast<std::size_t>(place)])] = {node, place};
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
  return std::is_sorted(homes_.begin(), homes_.end(), [](const Home& one, const Home& other) {
    return std::pair(one.node, one.place) < std::pair(other.node, other.place);
  });
}

}  // namespace weft
