#include "base/kind.h"

#include <array>

namespace weft {
namespace {

constexpr std::array<const char*, kKinds> kNames = {
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
};

}  // namespace

const char* kind_name(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

bool reduces(Kind kind) {
  return kind >= Kind::reduce && kind <= Kind::exscan;
}

bool is_neighborhood(Kind kind) {
  return kind >= Kind::neighbor_allgather;
}

bool has_one_count(Kind kind) {
  switch (kind) {
    case Kind::gatherv:
    case Kind::scatterv:
    case Kind::allgatherv:
    case Kind::alltoallv:
    case Kind::alltoallw:
    case Kind::reduce_scatter:
      return false;
    default:
      return !is_neighborhood(kind);
  }
}

bool has_known_blocks(Kind kind) {
  return has_one_count(kind) || kind == Kind::allgatherv || kind == Kind::reduce_scatter;
}

bool waits_for_all(Kind kind) {
  switch (kind) {
    case Kind::barrier:
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::alltoall:
    case Kind::allreduce:
    case Kind::reduce_scatter_block:
      return true;
    default:
      return false;
  }
}

}  // namespace weft
