#include "gpu/mpi/sides.h"

namespace weft::gpu {
namespace {

void count_neighbors(MPI_Comm comm, Group* group) {
  int topology = MPI_UNDEFINED, weighted = 0;
  MPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    MPI_Cartdim_get(comm, &group->sources);
    group->sources *= 2;
    group->targets = group->sources;
  } else if (topology == MPI_GRAPH) {
    MPI_Graph_neighbors_count(comm, group->rank, &group->sources);
    group->targets = group->sources;
  } else if (topology == MPI_DIST_GRAPH) {
    MPI_Dist_graph_neighbors_count(comm, &group->sources, &group->targets, &weighted);
  }
}

}  // namespace

Group group_of(const Call& call) {
  Group group;
  MPI_Comm_rank(call.comm, &group.rank);
  MPI_Comm_size(call.comm, &group.size);
  if (is_neighborhood(call.kind)) count_neighbors(call.comm, &group);
  return group;
}

int senders_blocks(const Call& call, const Group& group) {
  const bool at_root = group.rank == call.root;
  switch (call.kind) {
    case Kind::barrier:
    case Kind::bcast:  // a bcast has one buffer, which counts as the receive buffer
      return 0;
    case Kind::scatter:
    case Kind::scatterv:
      return at_root ? group.size : 0;
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return group.size;
    case Kind::neighbor_alltoall:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      return group.targets;
    default:
      return 1;
  }
}

int receivers_blocks(const Call& call, const Group& group) {
  const bool at_root = group.rank == call.root;
  switch (call.kind) {
    case Kind::barrier:
      return 0;
    case Kind::reduce:
      return at_root ? 1 : 0;
    case Kind::gather:
    case Kind::gatherv:
      return at_root ? group.size : 0;
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return group.size;
    default:
      return is_neighborhood(call.kind) ? group.sources : 1;
  }
}

Side sending(const Call& call, const Group& group) {
  Side side{call.sendbuf, call.sendcounts, call.senddispls, call.sendtype, call.sendtypes};
  if (call.kind == Kind::reduce_scatter) {
    std::int64_t sum = 0;
    for (int rank = 0; rank < group.size; ++rank) sum += call.recvcounts.at(rank);
    side.counts = sum;
  } else if (call.kind == Kind::reduce_scatter_block) {
    side.counts = call.recvcounts.at(0) * group.size;
  }
  if (call.kind == Kind::reduce_scatter || call.kind == Kind::reduce_scatter_block) {
    side.type = call.recvtype;
  }
  return side;
}

Side receiving(const Call& call, const Group& group) {
  Side side{call.recvbuf, call.recvcounts, call.recvdispls, call.recvtype, call.recvtypes};
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  if (call.kind == Kind::reduce_scatter) {
    side.counts = in_place ? sending(call, group).counts : Numbers(call.recvcounts.at(group.rank));
  } else if (call.kind == Kind::reduce_scatter_block && in_place) {
    side.counts = sending(call, group).counts;
  }
  return side;
}

Measures measures_of(MPI_Datatype type) {
  MPI_Count size = 0, begin = 0, extent = 0, true_begin = 0, true_extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_extent_x(type, &begin, &extent);
  MPI_Type_get_true_extent_x(type, &true_begin, &true_extent);
  return {size, extent, size == extent && true_begin == 0 && true_extent == size};
}

bool is_changed(const Call& call, const Group& group) {
  if (call.kind == Kind::bcast) return group.rank != call.root;
  return call.kind != Kind::exscan || group.rank != 0 || call.sendbuf == MPI_IN_PLACE;
}

}  // namespace weft::gpu
