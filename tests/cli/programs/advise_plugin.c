/* A collective in a plugin that is loaded for each call, and the program that calls the plugin.
 * Usage: advise_plugin FILE MILLISECONDS CALLS. If PLUGIN is defined, this source is compiled to
 * the plugin FILE. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 8192 };

#ifdef PLUGIN
#include "advise_busy.h"

__attribute__((always_inline)) static inline void reduce(double* in, double* out) {
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
double work(double* in, double* out, double ms) {
  reduce(in, out);
  busy(ms);
  return out[COUNT / 2];
}
#else
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double* in = aligned_alloc(4096, COUNT * sizeof *in);
  double* out = aligned_alloc(4096, COUNT * sizeof *out);
  double sum = 0;
  for (int i = 0; i < COUNT; ++i) in[i] = i % 17;
  for (int i = 0; i < atoi(argv[3]); ++i) {
    void* const code = dlopen(argv[1], RTLD_NOW);
    double (*work)(double*, double*, double) = dlsym(code, "work");
    sum += work(in, out, atof(argv[2]));
    dlclose(code);
  }
  printf("sum %.1f\n", sum);
  MPI_Finalize();
  return 0;
}
#endif
