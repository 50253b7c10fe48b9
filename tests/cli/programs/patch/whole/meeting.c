/* Ranks that meet beside a call: in a file that one of them writes, and by messages of any rank,
 * which belong to a phase.
 * EXPECT written: left: ranks meet by a file
 * EXPECT phase: left: ranks meet by a file, a message
 * EXPECT alone: changed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 20000, steps = 10 };

static double work(int seed) {
  double x = seed;
  for (int i = 0; i < n; ++i) x = 0.5 * x + i % 3;
  return x;
}

static double value_of(const char* name) {
  double value = 0;
  FILE* file = fopen(name, "r");
  if (file == NULL || fscanf(file, "%lf", &value) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(file);
  return value;
}

static double by_file(int rank, int step) {
  char name[32];
  snprintf(name, sizeof name, "meeting-%d.txt", step);
  double* field = calloc(n, sizeof *field);
  if (rank == 0) {
    FILE* file = fopen(name, "w");
    if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    fprintf(file, "%d\n", step);
    fclose(file);
    for (int i = 0; i < n; ++i) field[i] = i;
  }
  MPI_Bcast(field, n, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL written */
  double sum = value_of(name);
  sum += work(step);
  sum += field[step]; /* USE written */
  free(field);
  return sum;
}

static double by_message(int rank, int step) {
  double *part = calloc(n, sizeof *part), *total = calloc(n, sizeof *total), sum = 0, got = 0;
  part[0] = step;
  MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL phase */
  if (rank > 0) {
    MPI_Send(&part[1], 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  }
  sum += work(step);
  sum += total[0]; /* USE phase */
  if (rank == 0) {
    MPI_Recv(&got, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  free(part);
  free(total);
  return sum + got;
}

static double alone(int step) {
  double *part = calloc(n, sizeof *part), *total = calloc(n, sizeof *total), sum = 0;
  part[1] = step;
  MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL alone */
  sum += work(step);
  sum += total[1]; /* USE alone */
  free(part);
  free(total);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    sum += by_file(rank, step);
    if (ranks == 2) sum += by_message(rank, step);
    sum += alone(step);
  }
  if (rank == 0) printf("%.10g\n", sum);
  return MPI_Finalize();
}
