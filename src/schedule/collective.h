// What an algorithm may know of one collective call: kind, shape and the sizes of its elements.
// Why: algorithms see numbers only, no MPI handles, so that a schedule can be built, cached,
// printed, verified and simulated without an MPI library.
#pragma once

#include <cstdint>

namespace weft {

enum class Kind : std::uint8_t { barrier, bcast, reduce, allreduce, allgather, alltoall, scan };
inline constexpr int kKinds = 7;

const char* kind_name(Kind kind);  // "allreduce"

// `count` elements of one datatype, as MPI describes it; all in bytes but `count`.
// For allgather and alltoall, `count` is per block (per peer).
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

// Rank-invariant: kind, size, root, commutative, in_place (except at the root of reduce), and
// bytes() of the layouts. A layout's count and extent may differ between ranks (bcast, alltoall,
// allgather with different but matching types): never let them decide what travels.
struct Shape {
  Kind kind = Kind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  bool in_place = false;
  bool commutative = true;
  Layout send;  // reductions and bcast: send == recv
  Layout recv;

  bool operator==(const Shape&) const = default;
};

}  // namespace weft
