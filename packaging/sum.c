/* A program as a user has it: one non-blocking sum over all ranks. Ends with 0 if the result is
 * right. The checks of the packages run it under Weft. */
#include <mpi.h>

enum { COUNT = 1 << 17 };

int main(int argc, char** argv) {
  static double from[COUNT], to[COUNT];
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < COUNT; ++i) from[i] = rank + i;
  MPI_Request request;
  MPI_Iallreduce(from, to, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) wrong += to[i] != size * (double)i + size * (size - 1) / 2;
  MPI_Finalize();
  return wrong != 0;
}
