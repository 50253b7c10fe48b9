/* short_sums CALLS: MPI_Iallreduce of a few numbers, with a little time before each is waited for;
 * results are checked. Every ten calls one more is made on a duplicate that is then freed. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 16 };

static int rank, ranks;

static int is_wrong(MPI_Comm comm, int call) {
  double own[COUNT], sum[COUNT];
  MPI_Request request;
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) own[i] = rank + call + i;
  MPI_Iallreduce(own, sum, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request);
  usleep(100);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT; ++i)
    if (sum[i] != ranks * (ranks - 1) / 2.0 + (double)ranks * (call + i)) wrong = 1;
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
