/* A sum in a loop, whose arguments stay the same. */
#include "work.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double *part = malloc(N * sizeof *part), *total = malloc(N * sizeof *total), answer = 0;
  for (int step = 0; step < STEPS; ++step) {
    fill(part, step);
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    answer += busy(step);
    answer += used(total);
  }
  free(part);
  free(total);
  return ended(answer);
}
