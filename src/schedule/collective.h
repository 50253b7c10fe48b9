// What an algorithm may know of one collective call: kind, shape and the sizes of its elements.
// Why: algorithms see numbers only, no MPI handles, so that a schedule can be built, cached,
// printed, verified and simulated without an MPI library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/kind.h"
#include "schedule/nodes.h"

namespace weft {

// `count` elements of one datatype, as MPI describes it; all in bytes but `count`.
// Where a buffer has one block per peer, `count` is that of a block.
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

// Which datatype a count refers to. `byte` is for packed data in temp. The types of an alltoallw
// are numbered from `first_of_many` on: those of the send blocks, then those of the receive blocks.
enum class Unit : std::int32_t { send, recv, byte, first_of_many };

// One block of a user's buffer with one block per peer.
struct Block {
  std::int64_t count = 0;
  std::int64_t offset = 0;  // bytes from the buffer's origin
  Unit unit = Unit::recv;

  bool operator==(const Block&) const = default;
};

// Rank-invariant: kind, size, root, commutative, on_one_node, nodes, domains, has_leaders, in_place
// (except where only the root may say it), and agreed_bytes(). A layout's count and extent may
// differ between ranks (different but matching types), and so may all that concerns one peer only:
// never let them decide what travels, except between the two ranks that both know it.
struct Shape {
  Kind kind = Kind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  // The contribution lies in the receive buffer; at the root of scatter(v): the own block stays in
  // the send buffer.
  bool in_place = false;
  bool commutative = true;
  bool on_one_node = false;  // all ranks share memory
  // Where not all do, but some: which. Shapes of one communicator have the same object.
  std::shared_ptr<const Nodes> nodes;
  // As many ranks on each node, and those at one place of all nodes have a communicator, on which
  // the MPI library's collectives may be called.
  bool has_leaders = false;
  // Where all do, but not all are near the same memory: which are. The same object, too.
  std::shared_ptr<const Domains> domains;
  // Of reductions and bcast: send == recv. Not significant on this rank: count 0.
  Layout send;
  Layout recv;
  // Only where blocks differ: gatherv and scatterv (at the root), allgatherv, reduce_scatter (recv,
  // one after the other), alltoallv, alltoallw, neighborhoods with v and w. Else empty, and block i
  // begins i * count * extent behind the origin.
  std::vector<Block> send_blocks;
  std::vector<Block> recv_blocks;
  std::vector<Layout> types;  // of alltoallw and neighbor_alltoallw: what units refer to
  // Neighborhoods: the peer of each block, in the order of the topology; -1: none (MPI_PROC_NULL),
  // the block is left alone. A rank may come up more than once: messages between two ranks match
  // in the order of their blocks.
  std::vector<int> destinations;
  std::vector<int> sources;
  // This rank's data come as packed bytes, which is what the layouts say, though its types have
  // holes.
  bool packed = false;

  bool operator==(const Shape&) const = default;
};

// Payload that all ranks know alike (all blocks together); none where each rank knows its own part
// only: gatherv, scatterv, alltoallv, alltoallw, neighborhoods.
std::optional<std::int64_t> agreed_bytes(const Shape& shape);
// Payload in this rank's buffers, the larger of what it gives and what it gets.
std::int64_t local_bytes(const Shape& shape);

// The ranks that share memory with this one, itself included, are told apart by their places.
inline int place_of(const Shape& shape, int rank) {
  return shape.nodes ? shape.nodes->place(rank) : rank;
}
inline int ranks_here(const Shape& shape) {
  return shape.nodes ? shape.nodes->ranks_on(shape.nodes->of(shape.rank)) : shape.size;
}
inline int rank_here(const Shape& shape, int place) {
  if (!shape.nodes) return place;
  return shape.nodes->ranks(shape.nodes->of(shape.rank))[static_cast<std::size_t>(place)];
}
inline int node_of(const Shape& shape) {
  return shape.nodes ? shape.nodes->of(shape.rank) : 0;
}
bool shares_memory_with(const Shape& shape, int rank);

}  // namespace weft
