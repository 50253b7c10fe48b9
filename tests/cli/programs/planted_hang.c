// A mistake after which no rank can continue: each waits in another call.
#include <mpi.h>

static double value[16];

int main(int argc, char** argv) {
  MPI_Request two[2];
  int rank, done = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Irecv(value, 8, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &two[0]);
  MPI_Irecv(value, 8, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &two[1]);  // overlap MPI_Irecv
  if (rank == 0)
    MPI_Recv(value + 8, 8, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // hang MPI_Recv
  else if (rank == 1)
    MPI_Barrier(MPI_COMM_WORLD);  // hang MPI_Barrier
  else
    while (!done) MPI_Test(&two[0], &done, MPI_STATUS_IGNORE);  // hang MPI_Test
  MPI_Finalize();
  return 0;
}
