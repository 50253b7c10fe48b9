// A PMPI tool that counts the calls of two MPI functions and prints the numbers at the end.
#include <mpi.h>
#include <stdio.h>

static int reductions, waits;

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  ++reductions;
  return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("tool: Iallreduce %d Wait %d\n", reductions, waits);
  return PMPI_Finalize();
}
