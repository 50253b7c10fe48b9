/* Usage: exchanges CALLS. It calls MPI_Ialltoall with 32 KiB for each rank and computes a little
 * before each wait. Results are checked. After every ten calls, one more is made on a duplicate
 * of the communicator, which is then freed. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 4096, MOST_RANKS = 8 };

static int rank, ranks;

static int is_wrong(MPI_Comm comm, int call) {
  static double own[MOST_RANKS][COUNT], all[MOST_RANKS][COUNT];
  MPI_Request request;
  int wrong = 0;
  for (int to = 0; to < ranks; ++to)
    for (int i = 0; i < COUNT; ++i) own[to][i] = rank + 10 * to + call + i;
  MPI_Ialltoall(own, COUNT, MPI_DOUBLE, all, COUNT, MPI_DOUBLE, comm, &request);
  usleep(100);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < COUNT; ++i)
      if (all[from][i] != from + 10 * rank + call + i) wrong = 1;
  return wrong;
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 100;
  int wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < calls; ++call) {
    wrong |= is_wrong(MPI_COMM_WORLD, call);
    if (call % 10 != 0) continue;
    MPI_Comm duplicate;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    wrong |= is_wrong(duplicate, call);
    MPI_Comm_free(&duplicate);
  }
  MPI_Finalize();
  return wrong;
}
