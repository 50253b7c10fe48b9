// Is linked to an MPI library, and does not begin MPI.
#include <mpi.h>

int main(void) {
  int begun = 1;
  MPI_Initialized(&begun);
  return begun;
}
