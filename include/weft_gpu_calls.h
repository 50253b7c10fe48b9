/* weft_gpu_calls.h: part of weft_gpu.h, and included by it. Written by tools/generate_gpu.py.
 *
 * weft_iX_enqueue starts MPI_IX in the stream; the arrays that it is given may be changed when it
 * has returned. On one communicator all ranks enqueue in the same order. While the stream is
 * captured, the call is collective and may wait for the other ranks, since the graph will start the
 * collective as a persistent one.
 *
 * weft_X_init prepares MPI_X_init, collective as that is, for weft_start_enqueue.
 *
 * The forms that end in _c have counts of MPI_Count, also where the MPI library has no such calls:
 * it needs them only where a count is larger than an int, and the data do not travel in parts.
 */
#ifndef WEFT_GPU_CALLS_H
#define WEFT_GPU_CALLS_H

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

WEFT_GPU_API int weft_iallgather_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iallgatherv_enqueue(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iallreduce_enqueue(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_allreduce_init(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ialltoall_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ialltoallv_enqueue(const void* sendbuf, const int sendcounts[],
    const int sdispls[], MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_alltoallv_init(const void* sendbuf, const int sendcounts[],
    const int sdispls[], MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ialltoallw_enqueue(const void* sendbuf, const int sendcounts[],
    const int sdispls[], const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
    const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_alltoallw_init(const void* sendbuf, const int sendcounts[],
    const int sdispls[], const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
    const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ibarrier_enqueue(MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_barrier_init(MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ibcast_enqueue(void* buffer, int count, MPI_Datatype datatype, int root,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_bcast_init(void* buffer, int count, MPI_Datatype datatype, int root,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iexscan_enqueue(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_exscan_init(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_igather_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_gather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_igatherv_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_gatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_allgather_enqueue(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_allgather_init(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_allgatherv_enqueue(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_allgatherv_init(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_alltoall_enqueue(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_alltoall_init(const void* sendbuf, int sendcount,
    MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_alltoallv_enqueue(const void* sendbuf, const int sendcounts[],
    const int sdispls[], MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_alltoallv_init(const void* sendbuf, const int sendcounts[],
    const int sdispls[], MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_alltoallw_enqueue(const void* sendbuf, const int sendcounts[],
    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
    const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_alltoallw_init(const void* sendbuf, const int sendcounts[],
    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
    const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ireduce_enqueue(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_reduce_init(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ireduce_scatter_enqueue(const void* sendbuf, void* recvbuf,
    const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_reduce_scatter_init(const void* sendbuf, void* recvbuf,
    const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_ireduce_scatter_block_enqueue(const void* sendbuf, void* recvbuf,
    int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_reduce_scatter_block_init(const void* sendbuf, void* recvbuf, int recvcount,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iscan_enqueue(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_scan_init(const void* sendbuf, void* recvbuf, int count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iscatter_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_scatter_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
    void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_iscatterv_enqueue(const void* sendbuf, const int sendcounts[],
    const int displs[], MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
    int root, MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_scatterv_init(const void* sendbuf, const int sendcounts[],
    const int displs[], MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
    int root, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iallgather_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_allgather_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iallgatherv_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_allgatherv_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iallreduce_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_allreduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ialltoall_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_alltoall_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ialltoallv_enqueue_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
    const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
    const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ialltoallw_enqueue_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ibcast_enqueue_c(void* buffer, MPI_Count count, MPI_Datatype datatype,
    int root, MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_bcast_init_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iexscan_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_exscan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_igather_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_gather_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_igatherv_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
    MPI_Datatype recvtype, int root, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_gatherv_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
    MPI_Datatype recvtype, int root, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_allgather_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_allgather_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_allgatherv_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_allgatherv_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
    MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_alltoall_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_alltoall_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_alltoallv_enqueue_c(const void* sendbuf,
    const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
    const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ineighbor_alltoallw_enqueue_c(const void* sendbuf,
    const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
    void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_neighbor_alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ireduce_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_reduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_ireduce_scatter_block_enqueue_c(const void* sendbuf, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_reduce_scatter_block_init_c(const void* sendbuf, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_ireduce_scatter_enqueue_c(const void* sendbuf, void* recvbuf,
    const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_reduce_scatter_init_c(const void* sendbuf, void* recvbuf,
    const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    weft_gpu_request* request);

WEFT_GPU_API int weft_iscan_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_scan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count,
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iscatter_enqueue_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm, weft_gpu_stream stream, weft_gpu_request* request);
WEFT_GPU_API int weft_scatter_init_c(const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm, weft_gpu_request* request);

WEFT_GPU_API int weft_iscatterv_enqueue_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, weft_gpu_stream stream,
    weft_gpu_request* request);
WEFT_GPU_API int weft_scatterv_init_c(const void* sendbuf, const MPI_Count sendcounts[],
    const MPI_Aint displs[], MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, weft_gpu_request* request);

#ifdef __cplusplus
}
#endif

#endif
