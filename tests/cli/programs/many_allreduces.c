/* Usage: many_allreduces CALLS COUNT. It makes CALLS successive MPI_Iallreduce of COUNT doubles,
 * and prints what is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = atoi(argv[1]), count = atoi(argv[2]);
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* in = malloc(sizeof(double) * (size_t)count);
  double* out = malloc(sizeof(double) * (size_t)count);
  for (int call = 0; call < calls; ++call) {
    MPI_Request request;
    for (int i = 0; i < count; ++i) in[i] = i + rank + call;
    MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i)
      wrong += out[i] != ranks * (double)(i + call) + ranks * (ranks - 1) / 2;
  }
  if (wrong) printf("rank %d: %d sums wrong\n", rank, wrong);
  free(in);
  free(out);
  MPI_Finalize();
  return wrong != 0;
}
