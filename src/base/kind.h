// The kinds of collectives.
#pragma once

#include <cstdint>

namespace weft {

enum class Kind : std::uint8_t {
  barrier,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
};
inline constexpr int kKinds = 22;

const char* kind_name(Kind kind);  // returns for instance "allreduce"
bool reduces(Kind kind);           // returns whether calls of this kind have an operator
bool is_neighborhood(Kind kind);
// Returns whether calls of this kind have a single count per side instead of arrays, so that all
// ranks know the size.
bool has_one_count(Kind kind);
// Returns whether all ranks know the size of every block: from one count, or from equal arrays.
bool has_known_blocks(Kind kind);
// For kinds with known blocks: returns whether no rank can return before all that give data have
// begun.
bool waits_for_all(Kind kind);

}  // namespace weft
