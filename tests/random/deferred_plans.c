/* Rank 0 starts collectives on one communicator before rank 1 does, so that engine auto defers
 * some of them while it learns. Then it starts collectives of many sizes on another
 * communicator. So Weft's thread builds the schedules of deferred calls while the application's
 * thread searches the remembered ones. It needs two ranks. It prints "deferred_plans: right". */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { CALLS = 12, OTHERS = 200, ROUNDS = 30, COUNT = 1000 };

static double own[COUNT], sums[CALLS][COUNT], others[OTHERS][OTHERS];

int main(int argc, char** argv) {
  MPI_Request requests[CALLS + OTHERS];
  MPI_Comm comm, another;
  int rank, level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &another);
  for (int i = 0; i < COUNT; ++i) own[i] = rank + i;
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank == 1) usleep(100 * (round % 10));
    for (int i = 0; i < CALLS; ++i)
      MPI_Iallreduce(own, sums[i], COUNT, MPI_DOUBLE, MPI_SUM, comm, &requests[i]);
    for (int i = 0; i < OTHERS; ++i)
      MPI_Iallreduce(own, others[i], 1 + (i + round) % OTHERS, MPI_DOUBLE, MPI_SUM, another,
                     &requests[CALLS + i]);
    MPI_Waitall(CALLS + OTHERS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < CALLS * COUNT; ++i)
      if (sums[i / COUNT][i % COUNT] != 2 * (i % COUNT) + 1) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < OTHERS; ++i)
      if (others[i][(i + round) % OTHERS] != 2 * ((i + round) % OTHERS) + 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_free(&comm);
  MPI_Comm_free(&another);
  if (rank == 0) printf("deferred_plans: right\n");
  MPI_Finalize();
  return 0;
}
