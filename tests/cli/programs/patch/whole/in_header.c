/* A call in an inline function of a header, which two functions call; the other one in the header
 * returns the result at once.
 * FILE in_header.norm.h
 * EXPECT scaled: changed
 * EXPECT largest: left: nothing could be computed
 */
#include <mpi.h>
#include <stdio.h>

#include "in_header.norm.h"

static double first(double* part, double* total) {
  return scaled_norm(part, total, 0.5);
}

static double second(double* part, double* total) {
  return scaled_norm(part, total, 2) + largest(part[1]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *part = malloc(length * sizeof *part), *total = calloc(length, sizeof *total), sum = 0;
  for (int i = 0; i < length; ++i) part[i] = rank + i % 5;
  for (int step = 0; step < 15; ++step) {
    sum += first(part, total) - second(part, total);
  }
  if (rank == 0) printf("%.10g\n", sum);
  free(part);
  free(total);
  return MPI_Finalize();
}
