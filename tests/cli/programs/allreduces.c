/* Usage: allreduces N. It calls MPI_Allreduce of a zero on each of N communicators, one after
 * the other. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int zero = 0, sum = 1;
  MPI_Init(&argc, &argv);
  for (int left = argc > 1 ? atoi(argv[1]) : 1; left > 0; --left) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(&zero, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    if (sum != 0) return 1;
  }
  MPI_Finalize();
  return 0;
}
