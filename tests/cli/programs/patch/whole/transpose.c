/* A transform of columns and rows: two exchanges that share a buffer, with twiddles computed beside
 * them, and one between two others of the same communicator.
 * EXPECT forward: changed
 * EXPECT back: changed
 * EXPECT norm: changed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 8192, steps = 15 };

static void twiddles(double* factor, int step) {
  for (int i = 0; i < n; ++i) factor[i] = 1.0 / (1 + (i + step) % 13);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t bytes = (size_t)n * ranks * sizeof(double);
  double *rows = malloc(bytes), *columns = malloc(bytes);
  double *factor = malloc(n * sizeof *factor), *squares = calloc(n, sizeof *squares);
  double* norm = calloc(n, sizeof *norm);
  for (int i = 0; i < n * ranks; ++i) rows[i] = rank + i % 17;
  for (int step = 0; step < steps; ++step) {
    MPI_Alltoall(rows, n, MPI_DOUBLE, columns, n, MPI_DOUBLE, MPI_COMM_WORLD); /* CALL forward */
    twiddles(factor, step);
    for (int i = 0; i < n * ranks; ++i) columns[i] *= factor[i % n];           /* USE forward */
    MPI_Alltoall(columns, n, MPI_DOUBLE, rows, n, MPI_DOUBLE, MPI_COMM_WORLD); /* CALL back */
    twiddles(factor, step + 1);
    for (int i = 0; i < n * ranks; ++i) rows[i] *= factor[i % n]; /* USE back */

    for (int i = 0; i < n; ++i) squares[i] = rows[i] * rows[i];
    MPI_Allreduce(squares, norm, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL norm */
    MPI_Barrier(MPI_COMM_WORLD);
    twiddles(factor, step);
    for (int i = 0; i < n; ++i) rows[i] += factor[i] / (1 + norm[i]); /* USE norm */
  }
  if (rank == 0) printf("%.10g %.10g\n", rows[1], norm[n - 1]);
  free(rows);
  free(columns);
  free(factor);
  free(squares);
  free(norm);
  return MPI_Finalize();
}
