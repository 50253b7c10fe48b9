/* A static result of several pages that lies beside a variable which is used all the time.
 * Usage: advise_hot MILLISECONDS CALLS. */
#include <mpi.h>
#include <stdlib.h>

enum { COUNT = 4096 };
/* One object, so that neither compiler nor linker chooses what lies beside the result. */
static struct {
  volatile double hot;
  double result[COUNT];
} memory;

__attribute__((noinline)) static void hot_case(double ms, double* in) {
  MPI_Allreduce(in, memory.result, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (const double end = MPI_Wtime() + ms / 1e3; MPI_Wtime() < end;)
    for (int i = 0; i < 100; ++i) memory.hot += 1;
  for (int i = 0; i < COUNT; ++i) memory.hot += memory.result[i];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double* in = calloc(COUNT, sizeof *in);
  for (int i = 0; i < atoi(argv[2]); ++i) hot_case(atof(argv[1]), in);
  MPI_Finalize();
  return 0;
}
