// Declares persistent collectives for MPI libraries whose mpi.h is of MPI 3.1 and lacks them (Open
// MPI 4.1, MPICH 3.4). Weft provides them if it is loaded. Without it the program ends with a
// message.
#pragma once

#include <mpi.h>

#include <cstdio>

#if MPI_VERSION < 4
#define WEFT_WEAK __attribute__((weak))
extern "C" {
WEFT_WEAK int MPI_Barrier_init(MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Bcast_init(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Gather_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int,
                              MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Scatter_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int,
                               MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Allgather_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm,
                                 MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Allgatherv_init(const void*, int, MPI_Datatype, void*, const int*, const int*,
                                  MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Gatherv_init(const void*, int, MPI_Datatype, void*, const int*, const int*,
                               MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Scatterv_init(const void*, const int*, const int*, MPI_Datatype, void*, int,
                                MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Alltoallv_init(const void*, const int*, const int*, MPI_Datatype, void*,
                                 const int*, const int*, MPI_Datatype, MPI_Comm, MPI_Info,
                                 MPI_Request*);
WEFT_WEAK int MPI_Alltoallw_init(const void*, const int*, const int*, const MPI_Datatype*, void*,
                                 const int*, const int*, const MPI_Datatype*, MPI_Comm, MPI_Info,
                                 MPI_Request*);
WEFT_WEAK int MPI_Alltoall_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm,
                                MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Reduce_init(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm,
                              MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Allreduce_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                                 MPI_Request*);
WEFT_WEAK int MPI_Reduce_scatter_init(const void*, void*, const int*, MPI_Datatype, MPI_Op,
                                      MPI_Comm, MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Reduce_scatter_block_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm,
                                            MPI_Info, MPI_Request*);
WEFT_WEAK int MPI_Scan_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                            MPI_Request*);
WEFT_WEAK int MPI_Exscan_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                              MPI_Request*);
}
#undef WEFT_WEAK
#endif

namespace bench {

inline void need_persistent() {
#if MPI_VERSION < 4
  if (MPI_Barrier_init) return;
  std::fputs("this MPI library has no persistent collectives: start the program by weft run\n",
             stderr);
  MPI_Abort(MPI_COMM_WORLD, 2);
#endif
}

}  // namespace bench
