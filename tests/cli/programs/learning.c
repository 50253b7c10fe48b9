/* learning CALLS DEPTH: MPI_Iallreduce and MPI_Ibcast in turns, DEPTH of each in flight, with a
 * little time between; results are checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 4096, MOST = 80 };

int main(int argc, char** argv) {
  static double own[MOST][COUNT], sum[MOST][COUNT], told[MOST][COUNT];
  const int calls = argc > 1 ? atoi(argv[1]) : 100, depth = argc > 2 ? atoi(argv[2]) : 1;
  MPI_Request requests[2 * MOST];
  int rank, ranks, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < calls; call += depth) {
    for (int i = 0; i < depth; ++i) {
      for (int k = 0; k < COUNT; ++k) {
        own[i][k] = rank + call + i + k;
        told[i][k] = rank == call % ranks ? call + i + k : -1;
      }
      MPI_Iallreduce(own[i], sum[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i]);
      MPI_Ibcast(told[i], COUNT, MPI_DOUBLE, call % ranks, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    usleep(500);
    MPI_Waitall(2 * depth, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < depth; ++i)
      for (int k = 0; k < COUNT; ++k) {
        const double expected = ranks * (ranks - 1) / 2.0 + (double)ranks * (call + i + k);
        if (sum[i][k] != expected || told[i][k] != call + i + k) wrong = 1;
      }
    if (call % 40 == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  if (wrong) printf("rank %d: wrong\n", rank);
  MPI_Finalize();
  return wrong;
}
