// A PMPI tool: counts the application's, or whoever's, calls of MPI_Iallreduce and MPI_Wait.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int started, waited;

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  ++started;
  return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

int MPI_Finalize(void) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("tool: %d started, %d waited\n", started, waited);
  fflush(stdout);
  return PMPI_Finalize();
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waited;
  return PMPI_Wait(request, status);
}
