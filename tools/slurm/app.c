// An MPI program as users have them, for tools/slurm-test: sums behind computation, and checks
// them. Rank 0 prints how many ranks on how many hosts took part, how many of them have Weft
// inside, and how many sums were wrong. It includes and links nothing of Weft's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 1 << 16, kTurns = 20 };

static double compute(double x) {
  for (int i = 0; i < 200000; ++i) x = x * 0.999 + 1.0;
  return x;
}

// Returns the number of ranks that are the first on their host, that is, the number of hosts.
static int hosts(int rank) {
  MPI_Comm node;
  int first, sum;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &first);
  first = first == 0;
  MPI_Allreduce(&first, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&node);
  return sum;
}

int main(int argc, char** argv) {
  int rank, ranks, wrong = 0, all_wrong, inside, all_inside;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* mine = malloc(kCount * sizeof(double));
  double* sum = malloc(kCount * sizeof(double));
  volatile double sink = rank;
  for (int turn = 0; turn < kTurns; ++turn) {
    MPI_Request request;
    for (int i = 0; i < kCount; ++i) mine[i] = (double)(rank + 1) * (i % 7 + turn);
    MPI_Iallreduce(mine, sum, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    sink = compute(sink);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double all = ranks * (ranks + 1) / 2.0;
    for (int i = 0; i < kCount; ++i) wrong += sum[i] != all * (i % 7 + turn);
  }
  inside = dlsym(RTLD_DEFAULT, "weft_version") != NULL;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&inside, &all_inside, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  const int nodes = hosts(rank);
  if (rank == 0)
    printf("app: %d ranks on %d hosts, Weft in %d of them, %d wrong\n", ranks, nodes, all_inside,
           all_wrong);
  MPI_Finalize();
  free(mine);
  free(sum);
  return 0;
}
