/* A sum whose result is used in the next round. */
#include "work.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double *part = malloc(N * sizeof *part), *total = calloc(N, sizeof *total), answer = 0;
  for (int step = 0; step < STEPS; ++step) {
    answer += busy(step);
    answer += used(total);
    fill(part, step);
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  answer += used(total);
  free(part);
  free(total);
  return ended(answer);
}
