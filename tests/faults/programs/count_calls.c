// A PMPI tool that counts the calls of MPI_Iallreduce and MPI_Wait, whoever makes them. Like
// Darshan it also defines PMPI_Init and PMPI_Init_thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int started, waited;

int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  int (*next)(int*, char***, int, int*) = dlsym(RTLD_NEXT, "PMPI_Init_thread");
  return next(argc, argv, required, provided);
}

int PMPI_Init(int* argc, char*** argv) {
  int (*next)(int*, char***) = dlsym(RTLD_NEXT, "PMPI_Init");
  return next(argc, argv);
}

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
