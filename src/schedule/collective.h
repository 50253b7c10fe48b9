// The facts about a collective call that an algorithm may use: kind, shape and element sizes.
// Algorithms see only numbers and no MPI handles, so a schedule can be built, cached, printed,
// verified and simulated without an MPI library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/kind.h"
#include "schedule/nodes.h"

namespace weft {

struct NodeEdges;

// Describes `count` elements of a datatype; all other fields are in bytes. In a buffer with one
// block per peer, `count` is that of one block.
struct Layout {
  std::int64_t count = 0;
  std::int64_t size = 1;         // payload of one element (MPI_Type_size)
  std::int64_t extent = 1;       // distance between elements
  std::int64_t true_lb = 0;      // offset of the first byte accessed (MPI_Type_get_true_extent)
  std::int64_t true_extent = 1;  // bytes accessed by one element
  bool plain = true;             // predefined and without gaps, so that data may be copied as bytes

  std::int64_t bytes() const { return count * size; }
  bool operator==(const Layout&) const = default;
};

// Says to which datatype a count refers. `byte` is for packed data in the temporary buffer. The
// datatypes of an alltoallw are numbered from `first_of_many`: first those of the send blocks, then
// those of the receive blocks.
enum class Unit : std::int32_t { send, recv, byte, first_of_many };

// A block of a buffer that has one block per peer.
struct Block {
  std::int64_t count = 0;
  std::int64_t offset = 0;  // in bytes from the buffer's origin
  Unit unit = Unit::recv;

  bool operator==(const Block&) const = default;
};

// Shape: the facts about one call on one rank. All ranks have equal kind, size, root, commutative,
// on_one_node, nodes, domains, has_leaders, in_place (unless only the root may use it), and
// agreed_bytes(). A layout's count and extent may differ between ranks, as may all facts about a
// single peer. Such facts must never decide which data are sent, except between the two ranks that
// both know them.
struct Shape {
  Kind kind = Kind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  // True if the call is in place: the input lies in the receive buffer or, at the root of
  // scatter(v), the root's own block stays in the send buffer.
  bool in_place = false;
  bool commutative = true;
  bool on_one_node = false;  // all ranks share memory
  // Describes the nodes if some but not all ranks share memory. All shapes of a communicator share
  // this object.
  std::shared_ptr<const Nodes> nodes;
  // True if all nodes have equally many ranks, and the ranks of equal node rank have a communicator
  // for calls of the MPI library's collectives.
  bool has_leaders = false;
  // Describes the NUMA domains if all ranks share memory and there are several domains. All shapes
  // of a communicator share this object.
  std::shared_ptr<const Domains> domains;
  // The layouts of the send and receive buffers, which are equal in reductions and bcast. A side
  // that is not significant on this rank has count 0.
  Layout send;
  Layout recv;
  // The blocks of each buffer, if these differ: in gatherv and scatterv (at the root), allgatherv,
  // reduce_scatter (recv, contiguous), alltoallv, alltoallw, and neighborhood collectives v and w.
  // Otherwise the list is empty, and block i begins i * count * extent bytes after the origin.
  std::vector<Block> send_blocks;
  std::vector<Block> recv_blocks;
  std::vector<Layout> types;  // datatypes of alltoallw and neighbor_alltoallw, numbered by Unit
  // The peer of each block in a neighborhood collective, in the order of the topology. -1 stands
  // for MPI_PROC_NULL, whose block stays unchanged. A rank may occur several times; messages
  // between two ranks match in the order of their blocks.
  std::vector<int> destinations;
  std::vector<int> sources;
  // Describes the edges of a neighbourhood on this node, if the ranks of each node have told each
  // other. Either all ranks have this or none; it is the same on all ranks of a node.
  std::shared_ptr<const NodeEdges> edges;
  // True if this rank's data are packed bytes, which the layouts describe, although the call's
  // datatypes have gaps.
  bool packed = false;

  bool operator==(const Shape&) const = default;
};

// Returns the payload in bytes of all blocks together, if all ranks know it; nothing if each rank
// knows only its own part (gatherv, scatterv, alltoallv, alltoallw, neighborhood collectives).
std::optional<std::int64_t> agreed_bytes(const Shape& shape);
// Returns the payload in bytes of this rank's input or output, whichever is larger.
std::int64_t local_bytes(const Shape& shape);

// node_rank_of() and the following functions refer to the ranks that share memory with this one,
// which are numbered by node rank.
inline int node_rank_of(const Shape& shape, int rank) {
  return shape.nodes ? shape.nodes->local_rank(rank) : rank;
}
inline int ranks_here(const Shape& shape) {
  return shape.nodes ? shape.nodes->ranks_on(shape.nodes->of(shape.rank)) : shape.size;
}
inline int rank_here(const Shape& shape, int node_rank) {
  if (!shape.nodes) return node_rank;
  return shape.nodes->ranks(shape.nodes->of(shape.rank))[static_cast<std::size_t>(node_rank)];
}
inline int node_of(const Shape& shape) {
  return shape.nodes ? shape.nodes->of(shape.rank) : 0;
}
bool shares_memory_with(const Shape& shape, int rank);

}  // namespace weft
