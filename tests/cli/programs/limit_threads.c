// A PMPI tool behind Weft in the chain: makes the MPI library grant no more than FUNNELED.
#include <mpi.h>

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  (void)required;
  return PMPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, provided);
}
