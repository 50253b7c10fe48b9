/* Conjugate gradients: a dot product in a function that is called from two places, and one in place
 * beside which the solution is updated.
 * EXPECT dot: left: nothing could be computed
 * EXPECT gamma: changed
 * EXPECT count: left: not in a block
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 20000, steps = 20 };

static double dot(const double* a, const double* b) {
  double own = 0, all;
  for (int i = 0; i < n; ++i) own += a[i] * b[i];
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL dot */
  return all;                                                        /* USE dot */
}

static void apply(const double* x, double* y) {
  for (int i = 0; i < n; ++i) {
    y[i] = 4 * x[i] - (i ? x[i - 1] : 0) - (i < n - 1 ? x[i + 1] : 0);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, calls = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* x = calloc(n, sizeof *x);
  double* r = malloc(n * sizeof *r);
  double* p = malloc(n * sizeof *p);
  double* q = malloc(n * sizeof *q);
  for (int i = 0; i < n; ++i) p[i] = r[i] = 1 + rank + i % 7;
  double before = dot(r, r);
  for (int step = 0; step < steps; ++step) {
    apply(p, q);
    const double alpha = before / dot(p, q);
    double gamma = 0;
    for (int i = 0; i < n; ++i) {
      r[i] -= alpha * q[i];
      gamma += r[i] * r[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, &gamma, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL gamma */
    for (int i = 0; i < n; ++i) {
      x[i] += alpha * p[i];
    }
    const double beta = gamma / before; /* USE gamma */
    for (int i = 0; i < n; ++i) p[i] = r[i] + beta * p[i];
    before = gamma;
    if (step % 2) MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD); /* CALL count */
    calls += step;                                                  /* USE count */
  }
  if (rank == 0) printf("%.10g %.10g %d\n", before, x[5], calls);
  free(x);
  free(r);
  free(p);
  free(q);
  return MPI_Finalize();
}
