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
// All ranks know alike what a call of it moves, by one count of each side: it comes without arrays.
bool has_one_count(Kind kind);
// Of those that do: no rank can be done with it before all have begun.
bool waits_for_all(Kind kind);

}  // namespace weft
