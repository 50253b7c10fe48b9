/* A planted fault that the random programs must find: this preloaded library changes one number
 * that a rank contributes to MPI_Iallreduce. The fault depends on the arguments only (rank 1,
 * plain ints, not in place), so that the call still fails when all other calls are left out. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank != 1 || type != MPI_INT || count == 0 || sendbuf == MPI_IN_PLACE)
    return PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
  int* altered = malloc(sizeof(int) * (size_t)count); /* never freed, since the call may need it */
  memcpy(altered, sendbuf, sizeof(int) * (size_t)count);
  altered[count / 2] ^= 1;
  return PMPI_Iallreduce(altered, recvbuf, count, type, op, comm, request);
}
