// Nodes: says which ranks of a communicator share memory. The same class, as Domains, says which
// ranks of one node share a NUMA domain. All its numbers are equal on all ranks, since hierarchical
// algorithms must find the same leaders everywhere. A formula replaces tables if ranks are placed
// in blocks or round-robin, as launchers do: in a job with a thousand nodes, each process would
// otherwise keep tables of more than a hundred thousand ranks for each communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

class Nodes {
 public:
  // node_of_rank: for each rank the number of its node; any numbers will do. domain_of_rank: for
  // each rank the number of its NUMA domain, such that the ranks of one domain get adjacent local
  // ranks; empty if there are no domains.
  explicit Nodes(const std::vector<int>& node_of_rank, const std::vector<int>& domain_of_rank = {});
  // Returns an object for `ranks` ranks that all share one node.
  static Nodes one(int ranks) { return Nodes(std::vector<int>(static_cast<std::size_t>(ranks))); }

  // The list of the ranks on one node, ordered by local rank. It is valid as long as its Nodes
  // object.
  class Ranks {
   public:
    class Iterator {
     public:
      using difference_type = std::ptrdiff_t;
      using value_type = int;
      Iterator() = default;
      Iterator(const Nodes* nodes, int node, int local_rank)
          : nodes_(nodes), node_(node), local_rank_(local_rank) {}
      int operator*() const { return nodes_->rank(node_, local_rank_); }
      Iterator& operator++() {
        ++local_rank_;
        return *this;
      }
      Iterator operator++(int) { return {nodes_, node_, local_rank_++}; }
      bool operator==(const Iterator&) const = default;

     private:
      const Nodes* nodes_ = nullptr;
      int node_ = 0, local_rank_ = 0;
    };

    Ranks(const Nodes& nodes, int node) : nodes_(&nodes), node_(node) {}
    std::size_t size() const { return static_cast<std::size_t>(nodes_->ranks_on(node_)); }
    int operator[](std::size_t local_rank) const {
      return nodes_->rank(node_, static_cast<int>(local_rank));
    }
    int front() const { return (*this)[0]; }
    int back() const { return (*this)[size() - 1]; }
    Iterator begin() const { return {nodes_, node_, 0}; }
    Iterator end() const { return {nodes_, node_, nodes_->ranks_on(node_)}; }
    std::vector<int> listed() const {
      std::vector<int> all;
      for (const int rank : *this) all.push_back(rank);
      return all;
    }

   private:
    const Nodes* nodes_;
    int node_;
  };

  // Returns the number of nodes. Nodes are numbered from 0 in the order of their lowest ranks.
  int count() const { return count_; }
  int of(int rank) const {
    if (dealt_ == Dealt::in_blocks) return rank / per_node_;
    return dealt_ == Dealt::in_turn ? rank % count_ : home(rank).node;
  }
  // Returns the rank's number among the ranks of its node, counted from 0. Local ranks follow the
  // order of ranks; with NUMA domains, those of the first domain come first.
  int local_rank(int rank) const {
    if (dealt_ == Dealt::anyhow) return home(rank).local_rank;
    const int number = dealt_ == Dealt::in_blocks ? rank % per_node_ : rank / count_;
    return local_ranks_.empty() ? number : local_ranks_[static_cast<std::size_t>(number)];
  }
  int rank(int node, int local_rank) const;
  Ranks ranks(int node) const { return {*this, node}; }
  int ranks_on(int node) const;

  bool some_share() const { return size_ > count_; }  // whether some node has several ranks
  bool all_alike() const;                             // whether all nodes have equally many ranks
  // Returns whether the ranks of each node are consecutive and have ascending local ranks.
  bool are_in_order() const;

  std::size_t bytes() const;  // bytes of memory that the object uses

  bool operator==(const Nodes& other) const = default;

 private:
  enum class Dealt : std::uint8_t { in_blocks, in_turn, anyhow };
  struct Home {
    int node;
    int local_rank;

    bool operator==(const Home&) const = default;
  };
  const Home& home(int rank) const { return homes_[static_cast<std::size_t>(rank)]; }
  bool try_rule(Dealt dealt);

  int size_ = 0, count_ = 0;
  Dealt dealt_ = Dealt::anyhow;
  int per_node_ = 1;  // ranks per node if they are placed in blocks; the last node may have fewer
  // Used only if a formula replaces the tables: local_ranks_ has the local rank of each rank of a
  // node in rank order, and numbers_ is its inverse. Both are empty if local ranks follow the order
  // of ranks.
  std::vector<std::uint16_t> local_ranks_, numbers_;
  // Used only if no formula gives the node of a rank (dealt_ is Dealt::anyhow): homes_ has the node
  // and local rank of each rank. ranks_ lists all ranks, node by node, and begins_ has the index in
  // ranks_ at which each node begins.
  std::vector<Home> homes_;
  std::vector<int> ranks_, begins_;
};

// Domains: says which ranks share a NUMA domain, that is, run on cores with the same local memory.
using Domains = Nodes;

}  // namespace weft
