/* Collectives whose send buffers are written a known time before the call. There is one function
 * for each kind of memory and of last write. Usage: advise_before MILLISECONDS CALLS. It prints
 * a checksum. On standard error it prints for each case the longest time on any rank from its
 * last write to its call, measured by its own clock. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "advise_busy.h"

enum { COUNT = 20000, MOST = 1000 };

static double before_static[1024], in_static[COUNT], after_static[1024];
static double *heap, *result, *constant;
static double written_at;
static int zeros;

static void fill(double* in, int round) {
  for (int i = 0; i < COUNT; ++i) in[i] = (i + round) % 17;
  written_at = now();
}
/* Calls the allreduce. Its value is how many microseconds before the call the send buffer was
 * written. */
#define CALL(in)                                                                         \
  (began = now(), MPI_Allreduce(in, result, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), \
   began - written_at)

static double began;
__attribute__((noinline)) static double heap_case(double ms, int round) {
  busy(ms / 2);
  fill(heap, round);
  busy(ms);
  const double us = CALL(heap);
  return us;
}
__attribute__((noinline)) static double static_case(double ms, int round) {
  fill(in_static, round);
  busy(ms);
  const double us = CALL(in_static);
  sink += before_static[0] + after_static[1023];
  return us;
}
/* The last write is of one number, long after all others. */
__attribute__((noinline)) static double late_case(double ms, int round) {
  fill(heap, round);
  busy(ms);
  heap[COUNT - 1] = round;
  written_at = now();
  busy(ms);
  const double us = CALL(heap);
  return us;
}
__attribute__((noinline)) static double read_case(double ms, int round) {
  busy(ms);
  if (pread(zeros, heap, 8000, 0) != 8000) puts("read failed");
  written_at = now();
  busy(ms);
  const double us = CALL(heap);
  return us;
}
static int round_of_thread;
static void* fill_heap(void* unused) {
  fill(heap, round_of_thread);
  return unused;
}
__attribute__((noinline)) static double thread_case(double ms, int round) {
  pthread_t thread;
  round_of_thread = round;
  pthread_create(&thread, NULL, fill_heap, NULL);
  pthread_join(thread, NULL);
  busy(ms);
  const double us = CALL(heap);
  return us;
}
__attribute__((noinline)) static double constant_case(double ms, int round) {
  busy(ms);
  written_at = 0;
  const double us = CALL(constant);
  return round < 0 ? 0 : us;
}
/* MPI reads the send buffer in MPI_Sendrecv before the collective reads it. */
__attribute__((noinline)) static double sent_case(double ms, int round) {
  static double received[COUNT];
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  busy(ms / 2);
  fill(heap, round);
  busy(ms / 2);
  MPI_Sendrecv(heap, COUNT, MPI_DOUBLE, 1 - rank, 0, received, COUNT, MPI_DOUBLE, 1 - rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  busy(ms / 2);
  const double us = CALL(heap);
  return us;
}
__attribute__((noinline)) static double stack_case(double ms, int round) {
  double in[COUNT];
  fill(in, round);
  busy(ms);
  const double us = CALL(in);
  return us;
}

static const struct {
  const char* name;
  double (*run)(double, int);
} cases[] = {{"heap_case", heap_case},     {"static_case", static_case},
             {"late_case", late_case},     {"read_case", read_case},
             {"thread_case", thread_case}, {"constant_case", constant_case},
             {"sent_case", sent_case},     {"stack_case", stack_case}};
enum { CASES = sizeof cases / sizeof *cases };
static double times[CASES][MOST];

int main(int argc, char** argv) {
  int rank, level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double ms = atof(argv[1]);
  const int calls = atoi(argv[2]);
  heap = malloc(COUNT * sizeof *heap);
  result = malloc(COUNT * sizeof *result);
  constant = malloc(COUNT * sizeof *constant);
  zeros = open("/dev/zero", O_RDONLY);
  fill(constant, 0);
  fill(heap, 0);
  double sum = 0;
  for (int which = 0; which < CASES; ++which)
    for (int i = 0; i < calls; ++i) {
      times[which][i] = cases[which].run(ms, i) * 1e3;
      for (int k = 0; k < COUNT; ++k) sum += result[k] * (k % 7);
    }
  if (rank == 0) printf("checksum %.3f\n", sum);
  for (int which = 0; which < CASES; ++which) {
    double longest = 0, of_all;
    for (int i = 0; i < calls; ++i) longest = times[which][i] > longest ? times[which][i] : longest;
    MPI_Reduce(&longest, &of_all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) fprintf(stderr, "%s %.3f\n", cases[which].name, of_all);
  }
  MPI_Finalize();
  return 0;
}
