// The facts about a collective call that an algorithm may use: kind, shape and element sizes.
// Algorithms see only numbers, no MPI handles, so that a schedule can be built, cached, printed,
// verified and simulated without an MPI library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/kind.h"
#include "schedule/nodes.h"

namespace weft {

// `count` elements of a datatype, as MPI describes it; all other fields are bytes. In a buffer with
// one block per peer, `count` is that of a block.
struct Layout {
  std::int64_t count = 0;
  std::int64_t size = 1;         // payload of one element (MPI_Type_size)
  std::int64_t extent = 1;       // distance between elements
  std::int64_t true_lb = 0;      // first byte really touched
  std::int64_t true_extent = 1;  // bytes really touched by one element
  bool plain = true;             // predefined and without holes: may be moved as bytes

  std::int64_t bytes() const { return count * size; }
  bool operator==(const Layout&) const = default;
};

// Says which datatype a count refers to. `byte` is for packed data in temp. The types of an
// alltoallw are numbered from `first_of_many`: those of the send blocks, then those of the receive
// blocks.
enum class Unit : std::int32_t { send, recv, byte, first_of_many };

// A block of a buffer that has one block per peer.
struct Block {
  std::int64_t count = 0;
  std::int64_t offset = 0;  // bytes from the buffer's origin
  Unit unit = Unit::recv;

  bool operator==(const Block&) const = default;
};

// Rank-invariant are kind, size, root, commutative, on_one_node, nodes, domains, has_leaders,
// in_place (except where only the root may say it), and agreed_bytes(). A layout's count and extent
// may differ between ranks (different but matching types), and so may all that concerns one peer
// only: they must never decide what travels, except between the two ranks that both know it.
struct Shape {
  Kind kind = Kind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  // The contribution lies in the receive buffer; at the root of scatter(v), its own block stays in
  // the send buffer.
  bool in_place = false;
  bool commutative = true;
  bool on_one_node = false;  // all ranks share memory
  // Describes the nodes if some but not all ranks share memory. All shapes of a communicator share
  // this object.
  std::shared_ptr<const Nodes> nodes;
  // All nodes have equally many ranks, and those with one node rank have a communicator on which
  // the MPI library's collectives may be called.
  bool has_leaders = false;
  // Describes the NUMA domains if all ranks share memory and there are several; shared like
  // `nodes`.
  std::shared_ptr<const Domains> domains;
  // send equals recv in reductions and bcast. A side that is not significant on this rank has count
  // 0.
  Layout send;
  Layout recv;
  // Only used where blocks differ: gatherv and scatterv (at the root), allgatherv, reduce_scatter
  // (recv, contiguous), alltoallv, alltoallw, and neighbourhood collectives with v and w. Otherwise
  // empty, and block i begins i * count * extent bytes after the origin.
  std::vector<Block> send_blocks;
  std::vector<Block> recv_blocks;
  std::vector<Layout> types;  // of alltoallw and neighbor_alltoallw: what units refer to
  // The peer of each block of a neighbourhood, in the order of the topology; -1 for MPI_PROC_NULL,
  // whose block is left unchanged. A rank may occur several times: messages between two ranks match
  // in the order of their blocks.
  std::vector<int> destinations;
  std::vector<int> sources;
  // This rank's data are packed bytes, as the layouts say, although its types have holes.
  bool packed = false;

  bool operator==(const Shape&) const = default;
};

// Returns the payload of all blocks together, if all ranks know it; nothing if each rank knows only
// its own part: gatherv, scatterv, alltoallv, alltoallw, neighbourhoods.
std::optional<std::int64_t> agreed_bytes(const Shape& shape);
// Returns the payload in this rank's buffers: the larger of its input and its output.
std::int64_t local_bytes(const Shape& shape);

// The ranks that share memory with this one, itself included, are identified by their node ranks.
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
