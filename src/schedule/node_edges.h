// NodeEdges: the messages (edges) of a neighborhood collective that begin or end on one node. The
// ranks of the node have told them to each other, so each rank knows which messages between two
// nodes can be joined to one. Both nodes know all edges between them: one as outgoing edges, the
// other as incoming ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/collective.h"

namespace weft {

struct Edge {
  int peer = -1;  // rank at the other end; -1 for MPI_PROC_NULL
  std::int64_t bytes = 0;

  bool operator==(const Edge&) const = default;
};

struct NodeEdges {
  // The outgoing and incoming messages of one rank, in the order of its blocks.
  struct OfRank {
    std::vector<Edge> out, in;

    std::int64_t bytes_out() const;
  };
  std::vector<OfRank> ranks;  // messages of each rank of this node, indexed by local rank
  // Bytes and number of the messages of all ranks of the communicator; equal on all ranks.
  std::int64_t all_bytes = 0, all_edges = 0;
  // True if they are those of an earlier call. Then only both ends of a message know its bytes now.
  bool may_have_changed = false;
};

// Returns the bytes of data of all ranks together, from NodeEdges or else from agreed_bytes();
// nothing if not all ranks know the sum.
std::optional<std::int64_t> bytes_of_all(const Shape& shape);

// Sets Shape::edges on all ranks, as if the ranks of each node had told their messages to each
// other. Does nothing if the data of some node do not fit into its shared memory. It is for tests
// and the simulator.
void tell_edges(std::vector<Shape>& all_ranks);

// Returns the messages that this rank sends and receives in a neighborhood collective, a gatherv,
// scatterv, alltoallv or alltoallw. In the latter four, a rank has no message to itself, but -1 in
// its place among all ranks.
NodeEdges::OfRank edges_of(const Shape& shape);

// Returns whether the data of these messages fit into the node's shared memory. A rank that is
// alone on its node has the same limit.
bool fits_memory(const NodeEdges& edges);

// Returns a checksum of this rank's messages: the sum of a hash over its outgoing ones, minus that
// over its incoming ones. The checksums of all ranks add up to 0 if both ends of each message agree
// on its bytes. Otherwise they add up to 0 with a probability of one in four billion.
std::int64_t disagreement(const Shape& shape, const NodeEdges::OfRank& own);

}  // namespace weft
