/* Collectives before and after which buffers are left alone for known times. There is one
 * function for each time. Usage: advise_planted CALLS. On standard error it prints for each
 * function, by the program's own clock, the least and the greatest number of microseconds for
 * which the send buffer was left alone before a call, and for which the result was left alone
 * after it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "advise_busy.h"

enum { COUNT = 8192 };

typedef struct {
  double least, most;
} Range;

static void add(Range* range, double least, double most) {
  if (least < range->least) range->least = least;
  if (most > range->most) range->most = most;
}

#define PLANTED(name, ms)                                                              \
  __attribute__((noinline)) static void name(double* in, double* out, Range* ranges) { \
    const double writes = now();                                                       \
    for (int i = 0; i < COUNT; ++i) in[i] = i % 17;                                    \
    const double written = now();                                                      \
    busy(ms);                                                                          \
    const double calls = now();                                                        \
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);                \
    const double returned = now();                                                     \
    busy(ms);                                                                          \
    const double touches = now();                                                      \
    sink += out[7];                                                                    \
    const double touched = now();                                                      \
    add(&ranges[0], calls - written, returned - writes);                               \
    add(&ranges[1], touches - returned, touched - calls);                              \
  }
PLANTED(planted_0, 0)
PLANTED(planted_200us, 0.2)
PLANTED(planted_10ms, 10)
PLANTED(planted_50ms, 50)

static const struct {
  const char* name;
  void (*run)(double*, double*, Range*);
} cases[] = {{"planted_0", planted_0},
             {"planted_200us", planted_200us},
             {"planted_10ms", planted_10ms},
             {"planted_50ms", planted_50ms}};
enum { CASES = sizeof cases / sizeof *cases };

/* Returns memory whose pages nothing else uses. */
static double* buffer(void) {
  return aligned_alloc(4096, COUNT * sizeof(double));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double *in[CASES], *out[CASES], least[2 * CASES], most[2 * CASES];
  Range ranges[CASES][2];
  for (int which = 0; which < CASES; ++which) {
    in[which] = buffer();
    out[which] = buffer();
    ranges[which][0] = ranges[which][1] = (Range){1e9, 0};
  }
  for (int i = 0; i < atoi(argv[1]); ++i)
    for (int which = 0; which < CASES; ++which)
      cases[which].run(in[which], out[which], ranges[which]);
  for (int i = 0; i < 2 * CASES; ++i) {
    least[i] = ranges[i / 2][i % 2].least * 1e3;
    most[i] = ranges[i / 2][i % 2].most * 1e3;
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(rank ? least : MPI_IN_PLACE, least, 2 * CASES, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(rank ? most : MPI_IN_PLACE, most, 2 * CASES, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  for (int i = 0; i < CASES && rank == 0; ++i)
    fprintf(stderr, "%s %.3f %.3f %.3f %.3f\n", cases[i].name, least[2 * i], most[2 * i],
            least[2 * i + 1], most[2 * i + 1]);
  MPI_Finalize();
  return 0;
}
