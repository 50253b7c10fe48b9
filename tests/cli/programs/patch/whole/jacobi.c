/* Jacobi's method: the residual is reduced in each step, and the loop's condition uses it.
 * EXPECT residual: changed
 * EXPECT checksum: left: its result is used at line
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 20000, most = 30 };

static double sweep(const double* restrict u, double* restrict next) {
  double change = 0;
  next[0] = u[0];
  next[n - 1] = u[n - 1];
  for (int i = 1; i < n - 1; ++i) {
    next[i] = 0.5 * (u[i - 1] + u[i + 1]);
    change += (next[i] - u[i]) * (next[i] - u[i]);
  }
  return change;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, step = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *u = calloc(n, sizeof *u), *next = calloc(n, sizeof *next);
  double change, residual, energy = 0;
  u[0] = 1 + rank;
  do {
    change = sweep(u, next);
    MPI_Allreduce(&change, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL residual */
    double* old = u;
    u = next;
    next = old;
    for (int i = 0; i < n; ++i) {
      energy += u[i] * u[i];
    }
    if (energy < 0) break;
  } while (residual > 1e-9 && ++step < most); /* USE residual */
  double total;
  MPI_Allreduce(&energy, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL checksum */
  if (rank == 0) printf("%d %.10g %.10g\n", step, residual, total);       /* USE checksum */
  free(u);
  free(next);
  return MPI_Finalize();
}
