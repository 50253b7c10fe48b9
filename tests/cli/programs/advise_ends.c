/* How programs end. advise_ends none|exit|kill|nonblocking. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void reduce(double* in, double* out) {
  MPI_Allreduce(in, out, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void nonblocking(double* in, double* out) {
  MPI_Request request;
  MPI_Iallreduce(in, out, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  for (int flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *in = calloc(1000, sizeof *in), *out = calloc(1000, sizeof *out);
  const char* how = argc > 1 ? argv[1] : "none";
  for (int i = 0; i < 20 && strcmp(how, "none") != 0; ++i)
    (strcmp(how, "nonblocking") == 0 ? nonblocking : reduce)(in, out);
  if (strcmp(how, "kill") == 0 && rank == 1) raise(SIGKILL);
  MPI_Finalize();
  return strcmp(how, "exit") == 0 ? 3 : 0;
}
