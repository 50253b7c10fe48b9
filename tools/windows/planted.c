/* Results that are left alone for a known time, one function for each kind of memory and of first
   touch. planted MILLISECONDS CALLS FILE: writes the time of each call, by its own clock, to
   FILE.RANK. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 8192 };

static double ms, *in, *on_heap, number_static;
static _Alignas(4096) double in_static[COUNT]; /* pages that nothing else uses */
static volatile double sink;
static FILE* own;
static int file;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
/* The first statement behind a call; the next one touches its result. */
static double leave(void) {
  const double returned = now();
  while (now() < returned + ms * 1e3) continue;
  return now() - returned;
}
#define CASE(name, out, count, touch)                                   \
  __attribute__((noinline)) static void name(void) {                    \
    MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); \
    const double us = leave();                                          \
    touch;                                                              \
    fprintf(own, #name " %.3f\n", us);                                  \
  }
CASE(heap, on_heap, COUNT, sink += on_heap[COUNT / 2])
CASE(fixed, in_static, COUNT, sink += in_static[COUNT / 2])
CASE(written, on_heap, COUNT, sink += pwrite(file, on_heap, 800, 0))
CASE(read_into, on_heap, COUNT, sink += pread(file, on_heap, 800, 0))
CASE(number, &number_static, 1, sink += number_static)

__attribute__((noinline)) static void stack(void) {
  double out[200];
  MPI_Allreduce(in, out, 200, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double us = leave();
  sink += out[7];
  fprintf(own, "stack %.3f\n", us);
}
__attribute__((noinline)) static void completed(void) {
  MPI_Request request;
  MPI_Iallreduce(in, on_heap, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const double us = leave();
  sink += on_heap[COUNT / 2];
  fprintf(own, "completed %.3f\n", us);
}

int main(int argc, char** argv) {
  int rank;
  char name[4096];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ms = atof(argv[1]);
  in = calloc(COUNT, sizeof *in);
  on_heap = calloc(COUNT, sizeof *on_heap);
  snprintf(name, sizeof name, "%s.%d", argv[3], rank);
  own = fopen(name, "w");
  snprintf(name, sizeof name, "%s.%d.data", argv[3], rank);
  file = open(name, O_RDWR | O_CREAT, 0600);
  for (int i = 0; i < atoi(argv[2]); ++i) {
    heap();
    fixed();
    written();
    read_into();
    number();
    stack();
    completed();
  }
  fclose(own);
  MPI_Finalize();
  return 0;
}
