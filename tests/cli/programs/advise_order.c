/* Successive calls that depend on each other in various ways, and calls that do not. The names
 * of the functions begin with "needs" or "free". Usage: advise_order ROUNDS. It prints a
 * checksum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 8192, ROWS = 4 };
#define CASE __attribute__((noinline)) static void
#define SUM(from, to, count) MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)

static double *in, *other, *out, *more, *rows, *sums, *one, *mine;
static double sink;
static int rank, ranks;

static void fill(double* values, int round) {
  for (int i = 0; i < COUNT; ++i) values[i] = (i + round) % 17;
}
static void use(const double* values) {
  for (int i = 0; i < COUNT; ++i) sink += values[i] / ranks;
}

/* Each sum is what the next call sends: one number here, many in the next function. */
CASE needs_the_number(void) {
  for (int i = 0; i < ROWS; ++i) {
    SUM(one, one + 512, 1);
    one[0] = one[512] * 0.25 + 1;
  }
}
CASE needs_the_sum(void) {
  for (int i = 0; i < ROWS; ++i) {
    SUM(in, out, COUNT);
    for (int k = 0; k < COUNT; ++k) in[k] = out[k] * 0.25;
  }
}
/* The first result is part of what the second call sends. The two calls are at different places
 * of the code. */
CASE needs_a_factor(void) {
  SUM(in, out, COUNT);
  other[0] = out[0] * 0.5;
  SUM(other, more, COUNT);
  use(more);
}
/* The second call sends the first result, so that only MPI reads it. */
CASE needs_it_in_mpi(void) {
  SUM(in, out, COUNT);
  SUM(out, more, COUNT);
  use(more);
}
/* The data of the two calls are independent, but the calls share one receive buffer here, and
 * one send buffer in the next function. */
CASE needs_the_receive_buffer(int round) {
  fill(in, round);
  fill(other, round);
  SUM(in, out, COUNT);
  SUM(other, out, COUNT);
  use(out);
}
CASE needs_the_send_buffer(int round) {
  fill(in, round);
  SUM(in, out, COUNT);
  in[round % COUNT] = 3;
  SUM(in, more, COUNT);
  use(out);
  use(more);
}
/* What the first call has sent is overwritten before the second call, which does not send it. */
CASE needs_what_it_has_sent(int round) {
  fill(in, round);
  fill(other, round);
  SUM(in, out, COUNT);
  in[round % COUNT] = 3;
  SUM(other, more, COUNT);
  use(out);
  use(more);
}
CASE needs_what_is_in_place(int round) {
  fill(out, round);
  MPI_Allreduce(MPI_IN_PLACE, out, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  use(out);
}
/* Two buffers take turns as receive buffers, so that a call depends on the last but one. */
CASE needs_the_last_but_one(int round) {
  fill(in, round);
  for (int i = 0; i < ROWS; ++i) SUM(in, i % 2 ? out : more, COUNT);
  use(out);
}
CASE needs_an_earlier_row(void) {
  for (int i = 0; i < ROWS; ++i) {
    SUM(rows + i * COUNT, sums + i * COUNT, COUNT);
    if (i > 0 && i < ROWS - 1) rows[(i + 1) * COUNT] = sums[(i - 1) * COUNT] * 0.5;
  }
}
/* Only the root looks at the result. */
CASE needs_what_the_root_has(void) {
  MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) other[0] = out[0];
  MPI_Bcast(other, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  sink += other[0];
}
CASE needs_the_length(int round) {
  if (rank == 0) one[0] = COUNT - round;
  MPI_Bcast(one, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Bcast(other, (int)one[0], MPI_DOUBLE, 0, MPI_COMM_WORLD);
  use(other);
}
CASE needs_to_decide(void) {
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (out[0] < 1e300) SUM(other, more, COUNT);
  use(more);
}

CASE free_of_each_other(int round) {
  fill(in, round);
  fill(other, round + 1);
  SUM(in, out, COUNT);
  SUM(other, more, COUNT);
  use(out);
  use(more);
}
CASE free_rows(int round) {
  for (int i = 0; i < ROWS; ++i) fill(rows + i * COUNT, round + i);
  for (int i = 0; i < ROWS; ++i) SUM(rows + i * COUNT, sums + i * COUNT, COUNT);
  for (int i = 0; i < ROWS; ++i) use(sums + i * COUNT);
}
CASE free_kinds(int round) {
  fill(in, round);
  if (rank == 0) fill(other, round);
  MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Bcast(other, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) use(out);
  use(other);
}

/* Calls in a wrapper count as calls of the function that calls the wrapper. */
__attribute__((noinline)) static void wrapped(const double* from, double* to) {
  SUM(from, to, COUNT);
  sink += 1;
}
__attribute__((noinline)) static void wrapped_twice(const double* from, double* to) {
  wrapped(from, to);
  sink += 1;
}
CASE needs_in_a_wrapper(int round) {
  fill(in, round);
  wrapped(in, out);
  in[1] = out[1] * 0.5;
  wrapped(in, more); /* needs the wrapper before */
  use(more);
}
CASE needs_what_a_wrapper_has_sent(int round) {
  fill(in, round);
  fill(other, round);
  wrapped(in, out);
  in[round % COUNT] = 3;
  wrapped(other, more); /* needs the wrapper's send buffer */
  use(out);
  use(more);
}
CASE needs_one_buffer_of_a_wrapper(int round) {
  fill(in, round);
  fill(other, round);
  wrapped_twice(in, out);
  wrapped_twice(other, out); /* needs the wrapper's receive buffer */
  use(out);
}
CASE free_in_a_wrapper(int round) {
  fill(mine, round);
  fill(mine + COUNT, round);
  wrapped_twice(mine, out);
  wrapped_twice(mine + COUNT, more); /* free of the wrapper before */
  use(out);
  use(more);
}
__attribute__((noinline)) static double sum_of(double part) {
  double sum = 0;
  MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}
CASE needs_numbers_of_a_wrapper(void) {
  const double first = sum_of(1);
  sink += sum_of(first * 0.5) * 1e-9;
}

static double* doubles(int rows_) {
  double* made = aligned_alloc(4096, rows_ * COUNT * sizeof *made);
  memset(made, 0, rows_ * COUNT * sizeof *made);
  return made;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  in = doubles(1), other = doubles(1), out = doubles(1), more = doubles(1);
  rows = doubles(ROWS), sums = doubles(ROWS), one = doubles(1), mine = doubles(2);
  one[0] = 1;
  const int rounds = atoi(argv[1]);
  for (int i = 0; i < rounds; ++i) {
    needs_the_number();
    needs_the_sum();
    needs_a_factor();
    needs_it_in_mpi();
    needs_the_receive_buffer(i);
    needs_the_send_buffer(i);
    needs_what_it_has_sent(i);
    needs_what_is_in_place(i);
    needs_the_last_but_one(i);
    needs_an_earlier_row();
    needs_what_the_root_has();
    needs_the_length(i);
    needs_to_decide();
    free_of_each_other(i);
    free_rows(i);
    free_kinds(i);
    needs_in_a_wrapper(i);
    needs_what_a_wrapper_has_sent(i);
    needs_one_buffer_of_a_wrapper(i);
    free_in_a_wrapper(i);
    needs_numbers_of_a_wrapper();
  }
  if (rank == 0) printf("checksum %.6f\n", sink + one[0]);
  MPI_Finalize();
  return 0;
}
