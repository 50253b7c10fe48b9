/* Macros around calls, in them and behind them, and parts that are compiled or not.
 * EXPECT wrapped: left: part of a larger expression
 * EXPECT defined: left: comes from the macro GLOBAL_SUM
 * EXPECT optional: left: a directive
 * EXPECT hidden: left: its result is used
 * EXPECT constant: changed
 * EXPECT counted: left: part of a larger expression
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH 20000
#define GLOBAL_SUM(a, b) MPI_Allreduce((a), (b), LENGTH, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)
#define MPI_DO(call)                                         \
  do {                                                       \
    if ((call) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1); \
  } while (0)
#define SCALE(i) (total[i] * 0.5)
#define WITH_SUM

static double work(int seed) {
  double x = seed;
  for (int i = 0; i < LENGTH; ++i) x = 0.5 * x + i % 3;
  return x;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* part = malloc(LENGTH * sizeof *part);
  double* total = calloc(LENGTH, sizeof *total);
  double sum = 0;
  for (int i = 0; i < LENGTH; ++i) part[i] = i + rank;
  for (int step = 0; step < 15; ++step) {
    MPI_DO(MPI_Allreduce(part, total, LENGTH, MPI_DOUBLE, MPI_SUM, /* CALL wrapped */
                         MPI_COMM_WORLD));
    sum += work(1);
    sum += total[1];         /* USE wrapped */
    GLOBAL_SUM(part, total); /* CALL defined */
    sum += work(2);
    sum += total[2]; /* USE defined */
#ifdef WITH_SUM
    MPI_Allreduce(part, total, LENGTH, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); /* CALL optional */
#endif
    sum += work(3);
    sum += total[3];                                                         /* USE optional */
    MPI_Allreduce(part, total, LENGTH, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD); /* CALL hidden */
    sum += SCALE(step);                                                      /* USE hidden */
    MPI_Allreduce(part, total, LENGTH, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL constant */
    sum += work(4);
    sum += total[4]; /* USE constant */
    const int error =
        MPI_Allreduce(part, total, LENGTH, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL counted */
    sum += work(5) + error;
    sum += total[5]; /* USE counted */
  }
  if (rank == 0) printf("%.10g\n", sum);
  free(part);
  free(total);
  return MPI_Finalize();
}
