/* One memory by several names: two arguments of a function, rows that a function returns, a member
 * by another pointer to its structure, and an array of pointers.
 * EXPECT in_place: left: may write
 * EXPECT apart: changed
 * EXPECT row: left: leads to its result
 * EXPECT member: left: leads to its result
 * EXPECT listed: left: leads to its result
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 20000, steps = 15 };
typedef struct {
  double *own, *all;
} Field;

static double work(int seed) {
  double x = seed;
  for (int i = 0; i < n; ++i) x = 0.5 * x + i % 3;
  return x;
}

static double smoothed(double* from, double* to, double* all) {
  double sum = 0;
  MPI_Allreduce(from, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL in_place */
  for (int i = 0; i < n; ++i) to[i] = 0.5 * i;
  for (int i = 0; i < n; ++i) sum += all[i]; /* USE in_place */
  return sum;
}

static double moved(const double* from, double* to, double* all) {
  double sum = 0;
  MPI_Allreduce(from, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL apart */
  for (int i = 0; i < n; ++i) to[i] = 0.5 * i;
  for (int i = 0; i < n; ++i) sum += all[i]; /* USE apart */
  return sum;
}

static double* row_of(double* grid, int row) {
  return grid + (size_t)row * n;
}

static double by_row(double* grid) {
  double *first = row_of(grid, 0), *again = row_of(grid, 0), sum = 0;
  MPI_Bcast(first, n, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL row */
  again[1] = 3;
  sum += work(1);
  sum += first[1]; /* USE row */
  return sum;
}

static double by_member(Field* field) {
  Field* same = field;
  MPI_Allreduce(field->own, field->all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL member */
  double sum = same->all[2];
  sum += work(2);
  return sum + field->all[2]; /* USE member */
}

static double listed(double* part, double* total) {
  double *list[] = {total, part}, sum = 0;
  MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL listed */
  list[1][2] = 1;
  sum += work(3);
  return sum + total[2]; /* USE listed */
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* u = malloc(n * sizeof *u);
  double* v = malloc(n * sizeof *v);
  double* all = malloc(n * sizeof *all);
  double* grid = calloc(2 * n, sizeof *grid);
  Field field = {u, all};
  double sum = 0;
  for (int i = 0; i < n; ++i) u[i] = v[i] = rank + i % 5;
  for (int step = 0; step < steps; ++step) {
    sum += smoothed(u, u, all) + moved(u, v, all) + by_row(grid);
    sum += by_member(&field) + listed(v, all);
  }
  if (rank == 0) printf("%.10g %.10g\n", sum, v[2]);
  free(u);
  free(v);
  free(all);
  free(grid);
  return MPI_Finalize();
}
