/* Send buffers and results in memory that another rank may touch through a mapping of its own.
 * There is one function for each kind of memory. Usage: advise_shared MILLISECONDS CALLS FILE;
 * the program creates FILE. On standard error it prints for each function the least and the
 * greatest number of microseconds for which this rank left its results alone, by its own clock.
 * The other rank touches them, where it can, half-way between write and call and half-way
 * between call and first use. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "advise_busy.h"

enum { COUNT = 20000, APART = 512 };

/* in, out: this rank's buffers. others_in, others_out: the addresses at which this rank sees the
 * other rank's buffers; if the memory is private, these are this rank's own. */
typedef struct {
  double *in, *out, *others_in, *others_out;
} Memory;
typedef struct {
  double least, most;
} Range;

#define CASE(name, count)                                                                \
  __attribute__((noinline)) static void name(const Memory* m, double ms, Range* range) { \
    for (int i = 0; i < (count); ++i) m->in[i] = i % 17;                                 \
    busy(ms / 2);                                                                        \
    m->others_in[0] = 0;                                                                 \
    busy(ms / 2);                                                                        \
    const double calls = now();                                                          \
    MPI_Allreduce(m->in, m->out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);            \
    const double returned = now();                                                       \
    busy(ms / 2);                                                                        \
    sink += m->others_out[0];                                                            \
    busy(ms / 2);                                                                        \
    const double touches = now();                                                        \
    sink += m->out[0];                                                                   \
    const double touched = now();                                                        \
    if (touches - returned < range->least) range->least = touches - returned;            \
    if (touched - calls > range->most) range->most = touched - calls;                    \
  }
CASE(alloc_case, COUNT)
CASE(alloc_number, 1)
CASE(mapped_case, COUNT)
CASE(mapped_number, 1)
CASE(window_case, COUNT)
CASE(window_number, 1)

static double spare[2];

static void measure(const char* name, void (*run)(const Memory*, double, Range*), Memory m,
                    char** argv) {
  Range range = {1e9, 0};
  for (int i = 0; i < atoi(argv[2]); ++i) run(&m, atof(argv[1]), &range);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(rank ? &range.least : MPI_IN_PLACE, &range.least, 1, MPI_DOUBLE, MPI_MIN, 0,
             MPI_COMM_WORLD);
  MPI_Reduce(rank ? &range.most : MPI_IN_PLACE, &range.most, 1, MPI_DOUBLE, MPI_MAX, 0,
             MPI_COMM_WORLD);
  if (rank == 0) fprintf(stderr, "%s %.3f %.3f\n", name, range.least * 1e3, range.most * 1e3);
}

static Memory in_blocks(double* mine, double* others) {
  return (Memory){mine, mine + COUNT + APART, others, others + COUNT + APART};
}

int main(int argc, char** argv) {
  enum { BYTES = (2 * COUNT + 2 * APART) * sizeof(double) };
  int rank, unit;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  Memory alloc = {NULL, NULL, spare, spare + 1};
  MPI_Alloc_mem(COUNT * sizeof(double), MPI_INFO_NULL, &alloc.in);
  MPI_Alloc_mem(COUNT * sizeof(double), MPI_INFO_NULL, &alloc.out);
  measure("alloc_case", alloc_case, alloc, argv);
  measure("alloc_number", alloc_number, alloc, argv);
  MPI_Free_mem(alloc.in);
  MPI_Free_mem(alloc.out);

  const int file = open(argv[3], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, 2 * BYTES)) abort();
  char* both = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const Memory mapped = in_blocks((double*)(both + rank * BYTES), (double*)(both + !rank * BYTES));
  measure("mapped_case", mapped_case, mapped, argv);
  measure("mapped_number", mapped_number, mapped, argv);

  MPI_Win window;
  MPI_Aint bytes;
  double *mine, *others;
  MPI_Win_allocate_shared(BYTES, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
  MPI_Win_shared_query(window, !rank, &bytes, &unit, &others);
  measure("window_case", window_case, in_blocks(mine, others), argv);
  measure("window_number", window_number, in_blocks(mine, others), argv);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
