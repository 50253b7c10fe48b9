/* Common parts of the programs advise_safety*: the result of a collective, a checksum of what a
 * case did with it, and the loop over the cases. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 3000
static double in[COUNT];
static int rank, round_number, level;
static unsigned long sum;

static void mix(const void* data, size_t bytes) {
  const unsigned char* p = data;
  for (size_t i = 0; i < bytes; ++i) sum = sum * 1099511628211ul + p[i];
}
static void mix_number(long number) {
  mix(&number, sizeof number);
}
static double* reduce_into(double* out) {
  for (int i = 0; i < COUNT; ++i) in[i] = i * 0.5 + round_number;
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return out;
}
static double* fresh(void) {
  return reduce_into(malloc(COUNT * sizeof(double)));
}
static int scratch_file(void) {
  char name[] = "/tmp/weft-safety-XXXXXX";
  int file = mkstemp(name);
  unlink(name);
  return file;
}

struct Case {
  const char* name;
  void (*run)(void);
};
/* Runs all cases, or the one that the argument names, and prints a checksum for each. */
static int run_cases(int argc, char** argv, const struct Case* cases, int count) {
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < count; ++i) {
    if (argc > 1 && strcmp(argv[1], cases[i].name)) continue;
    sum = 7;
    for (round_number = 0; round_number < 3; ++round_number) cases[i].run();
    if (rank == 0) printf("%s %lx\n", cases[i].name, sum);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
