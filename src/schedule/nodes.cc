// Implements Nodes: builds tables of each rank's node, then replaces them by a formula if it gives
// the same result.
#include "schedule/nodes.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace weft {

Nodes::Nodes(const std::vector<int>& node_of_rank, const std::vector<int>& domain_of_rank)
    : size_(static_cast<int>(node_of_rank.size())), homes_(node_of_rank.size()) {
  std::unordered_map<int, int> numbers;
  std::vector<int> on_node;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [found, is_new] = numbers.try_emplace(node_of_rank[rank], count_);
    if (is_new) {
      on_node.push_back(0);
      ++count_;
    }
    homes_[rank] = {found->second, on_node[static_cast<std::size_t>(found->second)]++};
  }
  begins_.assign(1, 0);
  for (const int count : on_node) begins_.push_back(begins_.back() + count);
  ranks_.resize(node_of_rank.size());
  for (int rank = 0; rank < size_; ++rank) {
    const auto begin = begins_[static_cast<std::size_t>(home(rank).node)];
    ranks_[static_cast<std::size_t>(begin + home(rank).local_rank)] = rank;
  }
  const auto is_nearer = [&](int one, int other) {
    return domain_of_rank[static_cast<std::size_t>(one)] <
           domain_of_rank[static_cast<std::size_t>(other)];
  };
  for (int node = 0; node < count_ && !domain_of_rank.empty(); ++node) {
    const auto begin = ranks_.begin() + begins_[static_cast<std::size_t>(node)];
    const auto end = ranks_.begin() + begins_[static_cast<std::size_t>(node) + 1];
    std::stable_sort(begin, end, is_nearer);
    for (auto at = begin; at != end; ++at)
      homes_[static_cast<std::size_t>(*at)].local_rank = static_cast<int>(at - begin);
  }
  if (!try_rule(Dealt::in_blocks)) try_rule(Dealt::in_turn);
}

// Replaces the tables by the formula for ranks that are dealt to the nodes in this way (in blocks,
// or to one node after the other), if it gives the same result. Returns whether it does.
bool Nodes::try_rule(Dealt dealt) {
  if (size_ == 0) return false;
  Nodes by_rule = *this;
  by_rule.dealt_ = dealt;
  by_rule.per_node_ = ranks_on(0);
  // Swapping with an empty vector releases the memory; an assignment would keep it.
  std::vector<Home>().swap(by_rule.homes_);
  std::vector<int>().swap(by_rule.ranks_);
  std::vector<int>().swap(by_rule.begins_);
  // If all nodes have equally many ranks, each must have its local ranks in the same order as the
  // first node.
  const int here = ranks_on(0);
  bool in_order = true;
  std::vector<std::uint16_t> local_ranks(static_cast<std::size_t>(here)),
      numbers(local_ranks.size());
  if (here > std::numeric_limits<std::uint16_t>::max()) return false;
  for (int number = 0; number < here; ++number) {
    const int rank = dealt == Dealt::in_blocks ? number : number * count_;
    if (rank >= size_ || home(rank).node != 0) return false;
    in_order = in_order && home(rank).local_rank == number;
    local_ranks[static_cast<std::size_t>(number)] =
        static_cast<std::uint16_t>(home(rank).local_rank);
    numbers[static_cast<std::size_t>(home(rank).local_rank)] = static_cast<std::uint16_t>(number);
  }
  if (!in_order) {
    if (!all_alike()) return false;
    by_rule.local_ranks_ = std::move(local_ranks);
    by_rule.numbers_ = std::move(numbers);
  }
  for (int rank = 0; rank < size_; ++rank)
    if (by_rule.of(rank) != home(rank).node || by_rule.local_rank(rank) != home(rank).local_rank)
      return false;
  *this = std::move(by_rule);
  return true;
}

int Nodes::ranks_on(int node) const {
  if (dealt_ == Dealt::in_blocks) return std::min(per_node_, size_ - node * per_node_);
  if (dealt_ == Dealt::in_turn) return (size_ - node + count_ - 1) / count_;
  return begins_[static_cast<std::size_t>(node) + 1] - begins_[static_cast<std::size_t>(node)];
}

int Nodes::rank(int node, int local_rank) const {
  if (dealt_ == Dealt::anyhow)
    return ranks_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(node)] + local_rank)];
  const int number = numbers_.empty() ? local_rank : numbers_[static_cast<std::size_t>(local_rank)];
  return dealt_ == Dealt::in_blocks ? node * per_node_ + number : number * count_ + node;
}

bool Nodes::all_alike() const {
  for (int node = 1; node < count_; ++node)
    if (ranks_on(node) != ranks_on(0)) return false;
  return true;
}

bool Nodes::are_in_order() const {
  for (int rank = 1; rank < size_; ++rank)
    if (std::pair(of(rank - 1), local_rank(rank - 1)) > std::pair(of(rank), local_rank(rank)))
      return false;
  return true;
}

std::size_t Nodes::bytes() const {
  return sizeof *this + (local_ranks_.capacity() + numbers_.capacity()) * sizeof(std::uint16_t) +
         homes_.capacity() * sizeof(Home) + (ranks_.capacity() + begins_.capacity()) * sizeof(int);
}

}  // namespace weft
