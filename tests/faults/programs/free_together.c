// A PMPI tool behind Weft in the chain. Its PMPI_Comm_free, which Weft calls for its own
// communicators, waits for all ranks. MPI libraries whose collectives run in network hardware do
// that.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int freed = 0;

int PMPI_Comm_free(MPI_Comm* comm) {
  int (*free_comm)(MPI_Comm*) = (int (*)(MPI_Comm*))dlsym(RTLD_NEXT, "PMPI_Comm_free");
  int size = 1;
  MPI_Comm_size(*comm, &size);
  if (size > 1) {
    PMPI_Barrier(*comm);
    ++freed;
  }
  return free_comm(comm);
}

int MPI_Finalize(void) {
  printf("tool: %d freed together\n", freed);
  fflush(stdout);
  return PMPI_Finalize();
}
