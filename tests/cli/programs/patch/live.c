/* One reduction whose result is used after a while: the advisor measures where. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef STEPS
#define STEPS 12
#define MS 3
#endif
enum { n = 40000 };

static void busy(double ms) {
  const double end = MPI_Wtime() + ms * 1e-3;
  while (MPI_Wtime() < end) {
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double *part = malloc(n * sizeof *part), *total = malloc(n * sizeof *total), sum = 0;
  for (int step = 0; step < STEPS; ++step) {
    for (int i = 0; i < n; ++i) {
      part[i] = step + i;
    }
    MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    busy(MS);
    for (int i = 0; i < n; ++i) {
      sum += total[i];
    }
  }
  printf("%.6g\n", sum);
  free(part);
  free(total);
  return MPI_Finalize();
}
