/* Shared by the programs here: computation beside a collective, in counted steps, as programs have
 * it. STEPS, N and MS say how long a run is, how large a collective, and how long a computation. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef STEPS
#define STEPS 100
#define N 40000
#define MS 4
#endif
#define PER_MS 350000L /* steps of the computation in a millisecond, about */

/* Not inlined, so that it is compiled alike whatever stands around its call. */
static __attribute__((noinline)) double busy(double x) {
  for (long i = 0; i < MS * PER_MS; ++i) x = x * 0.999999 + 1e-6;
  return x;
}

static inline void fill(double* part, int step) {
  for (int i = 0; i < N; ++i) part[i] = step + i % 7;
}

static inline double used(const double* total) {
  double sum = 0;
  for (int i = 0; i < N; ++i) sum += total[i];
  return sum;
}

static inline int ended(double answer) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%.10g\n", answer);
  return MPI_Finalize();
}
