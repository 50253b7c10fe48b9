// Lists the kinds of MPI collectives, each of which stands for the blocking, non-blocking and
// persistent call.
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

const char* kind_name(Kind kind);  // returns the kind's name, such as "allreduce"
bool reduces(Kind kind);           // returns whether calls of this kind have an MPI_Op
bool is_neighborhood(Kind kind);
// Returns whether calls of this kind have a single count for each buffer instead of an array of
// counts, so that all ranks know the size of the call.
bool has_one_count(Kind kind);
// Returns whether every rank knows the size of every block. This holds for kinds with a single
// count, and for kinds whose array of counts must be equal on all ranks.
bool has_known_blocks(Kind kind);
// Returns whether no rank can complete a call of this kind before all ranks have started it.
// Meaningful only for kinds with has_known_blocks().
bool waits_for_all(Kind kind);

}  // namespace weft
