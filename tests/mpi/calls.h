// Every collective of MPI in each of its forms, behind one function. So the tests can go through
// all of them with the same checks, whatever their argument lists.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace conformance {

// Calls each(X, x) for every collective MPI_X, whose non-blocking form is MPI_Ix.
#define CONFORMANCE_COLLECTIVES(each)                                                       \
  each(Barrier, barrier) each(Bcast, bcast) each(Gather, gather) each(Gatherv, gatherv)     \
      each(Scatter, scatter) each(Scatterv, scatterv) each(Allgather, allgather)            \
          each(Allgatherv, allgatherv) each(Alltoall, alltoall) each(Alltoallv, alltoallv)  \
              each(Alltoallw, alltoallw) each(Reduce, reduce) each(Allreduce, allreduce)    \
                  each(Reduce_scatter, reduce_scatter)                                      \
                      each(Reduce_scatter_block, reduce_scatter_block) each(Scan, scan)     \
                          each(Exscan, exscan) each(Neighbor_allgather, neighbor_allgather) \
                              each(Neighbor_allgatherv, neighbor_allgatherv)                \
                                  each(Neighbor_alltoall, neighbor_alltoall)                \
                                      each(Neighbor_alltoallv, neighbor_alltoallv)          \
                                          each(Neighbor_alltoallw, neighbor_alltoallw)

enum class Kind {
#define CONFORMANCE_KIND(Name, name) name,
  CONFORMANCE_COLLECTIVES(CONFORMANCE_KIND)
#undef CONFORMANCE_KIND
};
inline constexpr int kKinds = static_cast<int>(Kind::neighbor_alltoallw) + 1;

enum class Form { blocking, nonblocking, persistent };

#if MPI_VERSION >= 4
inline constexpr bool kLargeCounts = true, kPersistent = true;
#elif defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
inline constexpr bool kLargeCounts = false, kPersistent = true;
#define CONFORMANCE_NO_LARGE_COUNTS
#else
inline constexpr bool kLargeCounts = false, kPersistent = false;
#define CONFORMANCE_NO_LARGE_COUNTS
#define CONFORMANCE_NO_PERSISTENT
#endif

std::string kind_name(Kind kind);  // such as "allreduce"
// Returns the MPI name of the call, such as "MPI_Iallreduce_c".
std::string call_name(Kind kind, Form form, bool large);

bool is_neighbor(Kind kind);
bool is_reduction(Kind kind);
bool has_root(Kind kind);
bool has_in_place(Kind kind);
bool is_vector(Kind kind);      // whether counts differ between blocks; also true for alltoallw
bool has_each_type(Kind kind);  // whether each block has a type of its own
// Return whether each block to be sent, or to be received, has a displacement of its own.
bool has_send_places(Kind kind);
bool has_receive_places(Kind kind);

template <class Count, class Displacement>
struct Arrays {
  std::vector<Count> send_counts, receive_counts;
  std::vector<Displacement> send_places, receive_places;
};

// The arguments of a call. Must outlive the operation, like the arrays and buffers of every MPI
// call.
struct Arguments {
  void* send = nullptr;
  void* receive = nullptr;
  Arrays<int, int> ints;
  Arrays<MPI_Count, MPI_Aint> larges;
  std::vector<MPI_Datatype> send_types, receive_types;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

int call(Kind kind, Form form, bool large, const Arguments& arguments, MPI_Request* request);

}  // namespace conformance
