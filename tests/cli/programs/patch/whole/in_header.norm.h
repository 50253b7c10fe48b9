#ifndef NORM_H
#define NORM_H

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

enum { length = 20000 };

static inline double scaled_norm(const double* part, double* restrict total, double by) {
  double sum = 0;
  MPI_Allreduce(part, total, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL scaled */
  for (int i = 0; i < length; ++i) sum += by * i;
  for (int i = 0; i < length; ++i) sum += total[i]; /* USE scaled */
  return sum;
}

static inline double largest(double own) {
  double all;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); /* CALL largest */
  return fabs(all);                                                  /* USE largest */
}

#endif
