// Nodes: which ranks of a communicator share memory, where not all of them do; and Domains, the
// same inside one node: which ranks are near the same memory. Why rank-invariant numbers:
// algorithms by levels must find the same leaders on every rank.
#pragma once

#include <cstddef>
#include <vector>

namespace weft {

class Nodes {
 public:
  // node_of_rank: any number for each node, the same for ranks that share memory. domain_of_rank:
  // so that on each node those of one domain have places side by side; empty: no matter.
  explicit Nodes(const std::vector<int>& node_of_rank, const std::vector<int>& domain_of_rank = {});
  // All ranks together on one.
  static Nodes one(int ranks) { return Nodes(std::vector<int>(static_cast<std::size_t>(ranks))); }

  // Nodes count from 0 in the order of their lowest ranks.
  int count() const { return static_cast<int>(ranks_.size()); }
  int of(int rank) const { return at(rank).node; }
  // Place of a rank among those of its node, which count from 0 in the order of their ranks, domain
  // by domain where these were given.
  int place(int rank) const { return at(rank).place; }
  const std::vector<int>& ranks(int node) const { return ranks_[static_cast<std::size_t>(node)]; }
  int ranks_on(int node) const { return static_cast<int>(ranks(node).size()); }

  bool some_share() const;    // some node has several ranks
  bool all_alike() const;     // all nodes have the same number of ranks
  bool are_in_order() const;  // the ranks of each node are consecutive, and so are their places

  bool operator==(const Nodes& other) const { return ranks_ == other.ranks_; }

 private:
  struct Home {
    int node;
    int place;
  };
  const Home& at(int rank) const { return homes_[static_cast<std::size_t>(rank)]; }

  std::vector<Home> homes_;              // by rank
  std::vector<std::vector<int>> ranks_;  // by node
};

// NUMA domains: ranks bound to cores for which the same memory is local.
using Domains = Nodes;

}  // namespace weft
