// A PMPI tool behind Weft in the chain, which makes the MPI library provide at most
// MPI_THREAD_FUNNELED.
#include <mpi.h>

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  (void)required;
  return PMPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, provided);
}
