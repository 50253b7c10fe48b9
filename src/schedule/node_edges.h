// NodeEdges: the messages of a neighbourhood collective that begin or end on one node, as its ranks
// have told each other. From these each rank knows how messages between two nodes are joined: all
// edges between two nodes are known on one of them as outgoing edges, and on the other as incoming
// ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/collective.h"

namespace weft {

struct Edge {
  int peer = -1;  // -1: none
  std::int64_t bytes = 0;

  bool operator==(const Edge&) const = default;
};

struct NodeEdges {
  // The edges of one rank, in the order of its blocks.
  struct OfRank {
    std::vector<Edge> out, in;

    std::int64_t bytes_out() const;
  };
  std::vector<OfRank> ranks;  // of this node, by local rank
  // The payload and the number of the edges of all ranks of the communicator; the same on all.
  std::int64_t all_bytes = 0, all_edges = 0;
};

// Returns the payload of all ranks together as all know it, from their edges or by agreed_bytes().
std::optional<std::int64_t> bytes_of_all(const Shape& shape);

// Sets `edges` in the shapes of all ranks, as if these had told each other, if all edges fit.
void tell_edges(std::vector<Shape>& all_ranks);

// Returns this rank's own edges.
NodeEdges::OfRank edges_of(const Shape& shape);

// Returns whether the data of these edges fit the node's memory. For a rank alone on its node there
// is the same limit.
bool fits_memory(const NodeEdges& edges);

// Returns a sum over this rank's outgoing edges minus one over its incoming ones. Over all ranks of
// the communicator these sums add up to 0 if both ends of each edge say the same about it;
// otherwise they do so only by a chance of one in four billion.
std::int64_t disagreement(const Shape& shape, const NodeEdges::OfRank& own);

}  // namespace weft
