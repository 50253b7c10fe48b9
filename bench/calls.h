// calls.h: every collective call in its three forms, on buffers of one size. Why apart: the
// programs that measure all of them take them from here.
#pragma once
#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "persistent.h"

namespace calls {

// The buffers of calls of one size: a vector of `bytes` bytes, or a block of `bytes` bytes for each
// rank.
struct Data {
  Data(long bytes, int own_rank, int all_ranks, MPI_Comm own_comm = MPI_COMM_WORLD)
      : bytes(bytes),
        comm(own_comm),
        rank(own_rank),
        ranks(all_ranks),
        n(static_cast<int>(bytes / 8)),
        counts(static_cast<std::size_t>(ranks), n),
        types(static_cast<std::size_t>(ranks), MPI_DOUBLE),
        in(static_cast<std::size_t>(n) * static_cast<std::size_t>(ranks), 1),
        out(in) {
    for (int i = 0; i < ranks; ++i) {
      places.push_back(i * n);
      byte_places.push_back(i * n * 8);
    }
  }

  const long bytes;
  const MPI_Comm comm;
  const int rank, ranks;
  const int n;
  std::vector<int> counts, places, byte_places;
  std::vector<MPI_Datatype> types;
  std::vector<double> in, out;
};

using Call = std::function<void(Data&)>;
using Start = std::function<void(Data&, MPI_Request*)>;

struct Collective {
  const char* name;
  Call blocking;
  Start start, initialise;
};

#define COMM d.comm
#define REAL MPI_DOUBLE
#define IN d.in.data()
#define OUT d.out.data()
#define COUNTS d.counts.data(), d.places.data()
#define BYTES d.counts.data(), d.byte_places.data()
#define TYPES d.types.data()
// The three forms of a call, whose names differ by more than what stands before them.
#define FORMS(name, Name, ...)                                                   \
  {                                                                              \
#name, []([[maybe_unused]] Data& d) { MPI_##Name(__VA_ARGS__); },              \
        []([[maybe_unused]] Data& d, MPI_Request* r) { MPI_I##name(__VA_ARGS__, r); }, \
        []([[maybe_unused]] Data& d, MPI_Request* r) {                             \
          MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, r);                        \
        } \
  }

inline const std::vector<Collective>& collectives() {
  static const std::vector<Collective> all = {
      FORMS(barrier, Barrier, COMM),
      FORMS(bcast, Bcast, OUT, d.n, REAL, 0, COMM),
      FORMS(gather, Gather, IN, d.n, REAL, OUT, d.n, REAL, 0, COMM),
      FORMS(gatherv, Gatherv, IN, d.n, REAL, OUT, COUNTS, REAL, 0, COMM),
      FORMS(scatter, Scatter, IN, d.n, REAL, OUT, d.n, REAL, 0, COMM),
      FORMS(scatterv, Scatterv, IN, COUNTS, REAL, OUT, d.n, REAL, 0, COMM),
      FORMS(allgather, Allgather, IN, d.n, REAL, OUT, d.n, REAL, COMM),
      FORMS(allgatherv, Allgatherv, IN, d.n, REAL, OUT, COUNTS, REAL, COMM),
      FORMS(alltoall, Alltoall, IN, d.n, REAL, OUT, d.n, REAL, COMM),
      FORMS(alltoallv, Alltoallv, IN, COUNTS, REAL, OUT, COUNTS, REAL, COMM),
      FORMS(alltoallw, Alltoallw, IN, BYTES, TYPES, OUT, BYTES, TYPES, COMM),
      FORMS(reduce, Reduce, IN, OUT, d.n, REAL, MPI_SUM, 0, COMM),
      FORMS(allreduce, Allreduce, IN, OUT, d.n, REAL, MPI_SUM, COMM),
      FORMS(reduce_scatter, Reduce_scatter, IN, OUT, d.counts.data(), REAL, MPI_SUM, COMM),
      FORMS(reduce_scatter_block, Reduce_scatter_block, IN, OUT, d.n, REAL, MPI_SUM, COMM),
      FORMS(scan, Scan, IN, OUT, d.n, REAL, MPI_SUM, COMM),
      FORMS(exscan, Exscan, IN, OUT, d.n, REAL, MPI_SUM, COMM),
  };
  return all;
}

#undef COMM
#undef REAL
#undef IN
#undef OUT
#undef COUNTS
#undef BYTES
#undef TYPES
#undef FORMS

}  // namespace calls
