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

const char* kind_name(Kind kind);  // "allreduce"
bool reduces(Kind kind);           // it has an operator
bool is_neighborhood(Kind kind);
// Returns whether all ranks know the size of the call from one count per side: it has no arrays.
bool has_one_count(Kind kind);
// For kinds with one count: returns whether no rank can return before all have begun.
bool waits_for_all(Kind kind);

}  // namespace weft
