/* Functions that are left early: by return, by goto to where memory is freed, in a switch, and by a
 * function that ends the program.
 * EXPECT read: left: may leave this place
 * EXPECT cleaned: changed
 * EXPECT chosen: changed
 * EXPECT retried: changed
 * EXPECT died: changed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 20000, times = 20 };

static double work(int seed) {
  double x = seed;
  for (int i = 0; i < n; ++i) x = 0.5 * x + i % 3;
  return x;
}

static double* made(int seed) {
  double* x = malloc(n * sizeof *x);
  for (int i = 0; i < n; ++i) x[i] = seed + i % 11;
  return x;
}

static int read_input(double* input, int is_bad, double* sum) {
  MPI_Bcast(input, n, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL read */
  if (is_bad) return 1;
  *sum += work(3);
  *sum += input[2]; /* USE read */
  return 0;
}

static int cleaned(int is_bad, double* sum) {
  int status = 1;
  double *part = made(1), *total = made(2);
  MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL cleaned */
  *sum += work(5);
  if (is_bad) goto out;
  *sum += total[1]; /* USE cleaned */
  status = 0;
out:
  free(part);
  free(total);
  return status;
}

static double chosen(int kind) {
  double *part = made(3), *total = made(4), sum = 0;
  switch (kind) {
    case 0:
      break;
    default: {
      MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); /* CALL chosen */
      sum += work(kind);
      for (int i = 0; i < n; ++i) {
        switch (i % 3) {
          case 1:
            sum += i;
            break;
          default:
            continue;
        }
      }
      sum += total[kind]; /* USE chosen */
      break;
    }
  }
  free(part);
  free(total);
  return sum;
}

static double retried(void) {
  double *part = made(5), *total = made(6), sum = 0;
  int tries = 0;
again:
  part[tries] = tries;
  MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD); /* CALL retried */
  sum += work(tries);
  if (++tries < 3) goto again;
  sum += total[3]; /* USE retried */
  free(part);
  free(total);
  return sum;
}

static void check(double x) {
  if (x < 0) {
    fprintf(stderr, "diverged\n");
    exit(1);
  }
}

static double died(void) {
  double *part = made(7), *total = made(8), sum = work(1);
  MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD); /* CALL died */
  check(sum);
  sum += work(2);
  sum += total[3]; /* USE died */
  free(part);
  free(total);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, bad = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *input = made(rank), sum = 0;
  for (int time = 0; time < times; ++time) {
    bad += read_input(input, time == 5, &sum) + cleaned(time == 7, &sum);
    sum += chosen(time % 4) + retried() + died();
  }
  if (rank == 0) printf("%d %.10g\n", bad, sum);
  free(input);
  return MPI_Finalize();
}
