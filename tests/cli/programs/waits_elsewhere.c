/* Rank 2 of four starts a bcast, in which it must pass the data on to rank 3. Before it
 * completes the bcast, it waits for a message that rank 3 sends once it has the data. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  enum { kCount = 1 << 18 };
  static int data[kCount];
  int rank = 0, token = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kCount; ++i) data[i] = rank == 0 ? i : -1;
  MPI_Ibcast(data, kCount, MPI_INT, 0, MPI_COMM_WORLD, &request);
  if (rank == 2) MPI_Recv(&token, 1, MPI_INT, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 3) MPI_Send(&token, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i)
    if (data[i] != i) {
      printf("rank %d: element %d is %d\n", rank, i, data[i]);
      return 1;
    }
  MPI_Finalize();
  return 0;
}
