/* Programs whose `weft advise` report begins with a known line. Usage: first_line KIND FORM
 * ROUNDS MS. KIND is free (sums of 1 MiB with little between them), started (such sums run
 * during computation that calls no MPI_Test), room (the sums are blocking, and computation
 * follows) or needed (sums of one number, each of which needs the one before). FORM is as-it-was
 * or changed. In the changed form, sums of kind room are started where they were called and
 * waited for where their result is used. MS is the computation per round in ms for started and
 * room; for needed it may be 0. The program prints how many seconds it took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 131072 };
static double *in, *out;
static volatile double sink;

/* Computes a fixed number of iterations on any machine. They take `ms` milliseconds at 3 GHz if
 * an iteration takes 8 cycles. */
static void compute(double ms) {
  double x = sink;
  for (long i = 0; i < (long)(ms * 375000); ++i) x = x * 0.999999 + 1e-6;
  sink = x;
}
static void use(void) {
  double sum = 0;
  for (int i = 0; i < COUNT; ++i) sum += out[i];
  sink = sum * 1e-9;
}
static void start(MPI_Request* request) {
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
}
static void sum_now(void) {
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void one_round(const char* kind, int changed, int round, double ms) {
  MPI_Request request;
  if (!strcmp(kind, "needed")) {
    for (int i = 0; i < 20; ++i) {
      MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      in[0] = out[0] * 0.25 + 1;
    }
    compute(ms > 0 ? ms : 0.2);
    return;
  }
  in[round % COUNT] = round;
  if (!strcmp(kind, "started") || (!strcmp(kind, "room") && changed)) {
    start(&request);
    compute(ms);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    sum_now();
    compute(!strcmp(kind, "room") ? ms : 0.05);
  }
  use();
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  MPI_Init(&argc, &argv);
  in = calloc(COUNT, sizeof *in), out = calloc(COUNT, sizeof *out);
  const int changed = !strcmp(argv[2], "changed"), rounds = atoi(argv[3]);
  const double ms = atof(argv[4]);
  const double began = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) one_round(argv[1], changed, i, ms);
  double mine = MPI_Wtime() - began, last = 0;
  MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("seconds %.6f\n", last);
  MPI_Finalize();
  return 0;
}
