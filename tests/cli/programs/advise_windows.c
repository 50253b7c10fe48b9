/* Collectives whose results are touched after a known time. There is one function for each kind
 * of memory and of first use. Usage: advise_windows MILLISECONDS CALLS. It prints a checksum,
 * and on standard error how many milliseconds the longest round took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "advise_busy.h"

static double before_static[1024], in_static[4096], after_static[1024];
static double scalar_static;
static double *heap, *small_heap;
static int file;

__attribute__((noinline)) static void heap_case(double ms, double* in) {
  MPI_Allreduce(in, heap, 40000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  busy(ms);
  sink += heap[7];
}
__attribute__((noinline)) static void static_case(double ms, double* in) {
  MPI_Allreduce(in, in_static, 4096, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  busy(ms);
  sink += in_static[0] + before_static[0] + after_static[1023];
}
__attribute__((noinline)) static void write_case(double ms, double* in) {
  MPI_Allreduce(in, heap, 30000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  busy(ms);
  if (write(file, heap, 8000) != 8000) puts("write failed");
}
__attribute__((noinline)) static void scalar_case(double ms, double* in) {
  MPI_Allreduce(in, &scalar_static, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  busy(ms);
  sink += scalar_static;
}
__attribute__((noinline)) static void stack_case(double ms, double* in) {
  double result[200];
  MPI_Allreduce(in, result, 200, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  busy(ms);
  sink += result[3];
}
__attribute__((noinline)) static void mpi_case(double ms, double* in) {
  MPI_Bcast(heap, 20000, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  busy(ms);
  MPI_Allreduce(heap, small_heap, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double ms = atof(argv[1]);
  const int calls = atoi(argv[2]);
  double* in = malloc(40000 * sizeof *in);
  heap = malloc(40000 * sizeof *heap);
  small_heap = malloc(100 * sizeof *small_heap);
  char name[] = "/tmp/weft-windows-XXXXXX";
  file = mkstemp(name);
  unlink(name);
  for (int i = 0; i < 40000; ++i) in[i] = heap[i] = i % 17;
  double longest = 0;
  for (int i = 0; i < calls; ++i) {
    const double began = now();
    heap_case(ms, in);
    static_case(ms, in);
    write_case(ms, in);
    scalar_case(ms, in);
    stack_case(ms, in);
    mpi_case(ms, in);
    if (now() - began > longest) longest = now() - began;
  }
  double sum = 0;
  for (int i = 0; i < 40000; ++i) sum += heap[i] * (i % 7);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(rank ? &longest : MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("checksum %.3f %.3f\n", sum, small_heap[5]);
    fprintf(stderr, "round %.3f\n", longest);
  }
  MPI_Finalize();
  return 0;
}
