/* Usage: in_turn CALLS. It makes successive calls of MPI_Iallreduce. Between start and wait it
 * sleeps 8 ms in every first of two calls, and 40 ms in every second. Results are checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 4096 };

int main(int argc, char** argv) {
  static double own[COUNT], sum[COUNT];
  const int calls = argc > 1 ? atoi(argv[1]) : 100;
  int rank, ranks, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < calls; ++call) {
    MPI_Request request;
    for (int k = 0; k < COUNT; ++k) own[k] = rank + call + k;
    MPI_Iallreduce(own, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    usleep(call % 2 ? 40000 : 8000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; ++k)
      if (sum[k] != ranks * (ranks - 1) / 2.0 + (double)ranks * (call + k)) wrong = 1;
  }
  if (wrong) printf("rank %d: wrong\n", rank);
  MPI_Finalize();
  return wrong;
}
