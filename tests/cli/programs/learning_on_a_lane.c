/* Usage: learning_on_a_lane CALLS. It calls MPI_Iallreduce on one of twenty communicators. That
 * is more communicators than can each have a communicator of Weft's alone while Weft learns. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 4096, COMMUNICATORS = 20 };

int main(int argc, char** argv) {
  static double own[COUNT], sum[COUNT];
  MPI_Comm comms[COMMUNICATORS];
  const int calls = argc > 1 ? atoi(argv[1]) : 100;
  int wrong = 0, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < COMMUNICATORS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int call = 0; call < calls; ++call) {
    MPI_Request request;
    for (int k = 0; k < COUNT; ++k) own[k] = call + k;
    MPI_Iallreduce(own, sum, COUNT, MPI_DOUBLE, MPI_SUM, comms[COMMUNICATORS - 1], &request);
    usleep(500);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; ++k) wrong |= sum[k] != ranks * (double)(call + k);
  }
  for (int i = 0; i < COMMUNICATORS; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return wrong;
}
