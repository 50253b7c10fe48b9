// A library that a Python program loads, and whose function Python calls once the interpreter has
// ended. It stands for mpi4py, which finalises MPI then.
#include <mpi.h>
#include <stdlib.h>

void ends(void) {
  if (MPI_Finalize() != MPI_SUCCESS) abort();
}
