/* A fault to be found: preloaded, it alters one number that a rank contributes to MPI_Iallreduce.
   Why: a tester that has never found anything proves nothing. The fault depends on the arguments
   alone (rank 1, plain ints, not in place), so that the one call still fails when all
   others are left out. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank != 1 || type != MPI_INT || count == 0 || sendbuf == MPI_IN_PLACE)
    return PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
  int* altered = malloc(sizeof(int) * (size_t)count); /* never freed: the call may need it */
  memcpy(altered, sendbuf, sizeof(int) * (size_t)count);
  altered[count / 2] ^= 1;
  return PMPI_Iallreduce(altered, recvbuf, count, type, op, comm, request);
}
