/* Diagnostics of a simulation, reduced in one step and printed in the next one and behind the loop.
 * The rounds end in several ways.
 * EXPECT diagnostics: changed
 * EXPECT control: left: may leave this place
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 20000, steps = 20 };

static void advance(double* field, int step) {
  for (int i = 0; i < n; ++i) {
    field[i] += 1e-3 * ((i + step) % 5) - 1e-4 * field[i];
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* field = calloc(n, sizeof *field);
  double* own = malloc(n * sizeof *own);
  double* all = calloc(n, sizeof *all);
  double drift = 0;
  for (int step = 0; step < steps; ++step) {
    advance(field, step + rank);
    if (step % 4 == 3) continue;
    if (step > 0) {
      drift += all[step] + all[n - 1]; /* USE diagnostics */
    }
    for (int i = 0; i < n; ++i) {
      own[i] = field[i] * field[i];
    }
    MPI_Allreduce(own, all, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); /* CALL diagnostics */
    advance(field, step);
    if (step == steps - 2) break;
  }
  drift += all[3]; /* USE diagnostics */
  double* limit = malloc(n * sizeof *limit);
  for (int i = 0; i < n; ++i) limit[i] = rank ? 0 : 100 + i;
  for (int step = 0; step < steps; ++step) {
    MPI_Bcast(limit, n, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL control */
    if (drift < 0) continue;
    advance(field, step);
    drift += limit[step]; /* USE control */
  }
  if (rank == 0) printf("%.10g %.10g\n", drift, field[7]);
  free(field);
  free(own);
  free(all);
  free(limit);
  return MPI_Finalize();
}
