// A program that is linked to an MPI library and does not initialise MPI.
#include <mpi.h>

int main(void) {
  int begun = 1;
  MPI_Initialized(&begun);
  return begun;
}
