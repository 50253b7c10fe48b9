// While a long message is in transit, or a long reduction that takes several polls, rank 0 only
// makes short collectives, which complete in the node's shared memory. Rank 0 is always the last to
// start them. Arguments: "blocking", "request" or "test"; "message" or "reduction".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 17, TIMES = 4 };

static void tell(int* done, char form) {
  MPI_Request request;
  if (form == 'b') {
    MPI_Bcast(done, 1, MPI_INT, 1, MPI_COMM_WORLD);
    return;
  }
  MPI_Ibcast(done, 1, MPI_INT, 1, MPI_COMM_WORLD, &request);
  for (int flag = 0; !flag && form == 't';) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char form = argc > 1 ? argv[1][0] : 'r';
  const int reduces = argc > 2 && !strcmp(argv[2], "reduction");
  double* const in = calloc(COUNT, sizeof *in);
  double* const out = calloc(COUNT, sizeof *out);
  int wrong = 0;
  for (int k = 1; k <= TIMES; ++k) {
    MPI_Request request;
    int done = 0;
    for (int i = 0; i < COUNT; ++i) in[i] = k + rank;
    if (reduces)
      MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    else if (rank == 0)
      MPI_Isend(in, COUNT, MPI_DOUBLE, 1, k, MPI_COMM_WORLD, &request);
    else
      MPI_Irecv(out, COUNT, MPI_DOUBLE, 0, k, MPI_COMM_WORLD, &request);
    while (!done) {
      if (rank == 0)
        usleep(100);
      else
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      tell(&done, form);
    }
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double expected = reduces ? 2 * k + 1 : k;
    if (rank == 1 || reduces) wrong += out[0] != expected || out[COUNT - 1] != expected;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 1) printf("%s\n", wrong ? "wrong" : "right");
  free(in);
  free(out);
  MPI_Finalize();
  return wrong != 0;
}
