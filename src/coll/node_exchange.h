// NodeExchange: an exchange of equally long blocks between ranks that give (all, or the root) and
// ranks that take (all, or the root), in which all data from one node to another form one message.
// The givers of a node write their blocks to its shared memory, ordered by destination node and
// rank. For each other node one rank sends that node's part and receives into shared memory. Then
// the takers copy their blocks out. Long blocks are divided into pieces, and the next piece is
// written while one is in transit.
// Träff, Rougier, MPI collectives and datatypes for hierarchical all-to-all communication,
// EuroMPI/ASIA 2014
#pragma once

#include <cstdint>
#include <vector>

#include "coll/packed_block.h"
#include "schedule/builder.h"

namespace weft {

class NodeExchange {
 public:
  // Says which rank of a node exchanges messages with another node: its first rank, or one of all
  // ranks in turn, so that they share the nodes.
  enum class Speaker : std::uint8_t { first, in_turn };

  // The collective must be an alltoall, gather or scatter with data.
  NodeExchange(Builder& b, Speaker speaker);

  void run();

 private:
  // Side: the ranks that give, or those that take.
  class Side {
   public:
    Side(const Shape& s, bool only_root) : s_(s), only_root_(only_root) {}
    bool has(int rank) const { return !only_root_ || rank == s_.root; }
    int on(int node) const {
      return only_root_ ? static_cast<int>(node == s_.nodes->of(s_.root))
                        : s_.nodes->ranks_on(node);
    }
    int in_all() const { return only_root_ ? 1 : s_.size; }
    // Returns the number of a rank of this side among those of its node.
    int number(int rank) const { return only_root_ ? 0 : s_.nodes->local_rank(rank); }
    std::vector<int> ranks(int node) const;

   private:
    const Shape& s_;
    const bool only_root_;
  };

  std::int64_t most_bytes() const;
  bool is_alone() const { return here_.size() == 1; }
  void signal();
  std::int64_t length(std::int64_t turn) const;

  int speaker(int node, int other) const;
  bool speaks_with(int node) const;
  bool speaks() const;
  // Return whether data go from this node to others, or come from others.
  bool sends() const { return givers_.on(node_) > 0 && takers_.in_all() > takers_.on(node_); }
  bool receives() const { return takers_.on(node_) > 0 && givers_.in_all() > givers_.on(node_); }

  // Return where the data to or from a node lie in shared memory. The areas follow each other in
  // the order of nodes. An area has a row for each giver, and in it a block for each taker.
  Location going(std::int64_t turn, int node) const;
  Location coming(std::int64_t turn, int node) const;
  std::int64_t bytes(std::int64_t turn, int from, int to) const;

  std::uint32_t written(std::int64_t turn) const;
  std::uint32_t ended(std::int64_t turn) const;
  void wait_for(const std::vector<int>& ranks, std::uint32_t value);
  void wait_for(int rank, std::uint32_t value);
  void wait_until_read(std::int64_t turn);

  void copy_in(std::int64_t turn);
  void write(std::int64_t turn);
  void exchange(std::int64_t turn);
  void copy_out(std::int64_t turn, int node);
  void copy_out_of_others(std::int64_t turn);

  PackedBlock& given(int rank) { return given_[static_cast<std::size_t>(rank)]; }
  PackedBlock& taken(int rank) { return taken_[static_cast<std::size_t>(rank)]; }

  Builder& b_;
  const Shape& s_;
  const Speaker speaker_;
  const Nodes& nodes_;
  const Nodes::Ranks here_;
  const int node_;
  const Side givers_, takers_;
  const std::int64_t bytes_;  // bytes of one block
  const std::int64_t piece_;
  const std::int64_t turns_;
  // Shared memory of outgoing and incoming blocks, each for even and for odd turns.
  std::vector<Location> going_, coming_;
  // Blocks to and from each rank, indexed by rank; empty blocks where nothing is given or taken.
  std::vector<PackedBlock> given_, taken_;
};

}  // namespace weft
