// What one MPI_Iallreduce of 8 bytes costs rank 0 until it returns: rank 1 comes later, so that
// nothing can be complete and every call of rank 0 executes the same instructions.
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int calls = atoi(argv[1]);
  int rank, token = 0;
  double in = 1, out;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < calls; ++i) {
    if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
