// The facts about a collective call that an algorithm may use: kind, number of ranks, and counts
// and sizes of the elements. They are numbers without MPI handles, so a schedule can be built,
// cached, printed, verified and simulated without an MPI library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/kind.h"
#include "schedule/nodes.h"

namespace weft {

struct NodeEdges;

// Layout: `count` elements of a datatype in a buffer. All other fields are in bytes. If the buffer
// has a block for each peer, `count` is that of one block.
struct Layout {
  std::int64_t count = 0;
  std::int64_t size = 1;    // bytes of data in one element (MPI_Type_size)
  std::int64_t extent = 1;  // bytes from one element to the next (extent of the datatype)
  // Offset of the first byte that an element accesses (MPI_Type_get_true_extent).
  std::int64_t true_lb = 0;
  std::int64_t true_extent = 1;  // bytes from the first to the last byte that an element accesses
  // True if the datatype is predefined and without gaps, so that it may be copied as bytes.
  bool plain = true;

  std::int64_t bytes() const { return count * size; }
  bool operator==(const Layout&) const = default;
};

// Says which datatype a count refers to: that of the send buffer, that of the receive buffer, or a
// byte, which is for packed data in the temporary buffer. An alltoallw has many datatypes. They are
// numbered from `first_of_many`: first those of the send blocks, then those of the receive blocks.
enum class Unit : std::int32_t { send, recv, byte, first_of_many };

// Block: where the data for or from one peer lie in a buffer with a block for each peer.
struct Block {
  std::int64_t count = 0;
  std::int64_t offset = 0;  // bytes from the beginning of the buffer
  Unit unit = Unit::recv;

  bool operator==(const Block&) const = default;
};

// Shape: the facts about one call on one rank. Equal on all ranks are kind, size, root,
// commutative, on_one_node, nodes, domains, has_leaders, agreed_bytes() and, unless only the root
// may pass MPI_IN_PLACE, in_place. Count and extent of a layout may differ between ranks, and so
// may all facts about a single peer. Such facts must never decide which data are sent, except
// between the two ranks that both know them.
struct Shape {
  Kind kind = Kind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  // True if the call is in place. The input then lies in the receive buffer; in a scatter(v), the
  // root's own block stays in its send buffer.
  bool in_place = false;
  bool commutative = true;
  bool on_one_node = false;  // true if all ranks share memory
  // Says which ranks share a node; nullptr if all ranks share memory or none do. All shapes of a
  // communicator share this object.
  std::shared_ptr<const Nodes> nodes;
  // True if all nodes have equally many ranks, and there are communicators that join the ranks of
  // equal node rank, on which the MPI library's collectives can be called.
  bool has_leaders = false;
  // Says which ranks share a NUMA domain, if all ranks share memory and have several domains;
  // otherwise nullptr. All shapes of a communicator share this object.
  std::shared_ptr<const Domains> domains;
  // Layouts of the send and the receive buffer. In reductions and bcast the two are equal. A buffer
  // that MPI ignores on this rank has count 0.
  Layout send;
  Layout recv;
  // The blocks of the send and of the receive buffer if their lengths differ: in gatherv and
  // scatterv (on the root), allgatherv, reduce_scatter (recv_blocks, contiguous), alltoallv,
  // alltoallw and the neighborhood collectives v and w. Otherwise the list is empty, and block i
  // begins i * count * extent bytes behind the beginning of the buffer.
  std::vector<Block> send_blocks;
  std::vector<Block> recv_blocks;
  std::vector<Layout> types;  // datatypes of an alltoallw or neighbor_alltoallw, indexed by Unit
  // The destination or source of each block of a neighborhood collective, in the order of the
  // topology; -1 stands for MPI_PROC_NULL, whose block stays unchanged. A rank may occur several
  // times: the n-th message between two ranks is the n-th block for that rank on both sides.
  std::vector<int> destinations;
  std::vector<int> sources;
  // The messages of a neighborhood collective that begin or end on this node, if the ranks of each
  // node have told them to each other; otherwise nullptr. Either all ranks have them or none. They
  // are equal on all ranks of a node.
  std::shared_ptr<const NodeEdges> edges;
  // True if the call's datatypes have gaps, but this rank's data have been packed, so that the
  // layouts describe packed bytes.
  bool packed = false;

  bool operator==(const Shape&) const = default;
};

// Returns the bytes of data in all blocks together, if all ranks know them; nothing if each rank
// knows only its own part (gatherv, scatterv, alltoallv, alltoallw, neighborhood collectives).
std::optional<std::int64_t> agreed_bytes(const Shape& shape);
// Returns the bytes of this rank's input or of its output, whichever are more.
std::int64_t local_bytes(const Shape& shape);

// Returns the rank's number among the ranks of its node (node rank). All functions below refer to
// the ranks that share memory with this one.
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
