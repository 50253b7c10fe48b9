/* Communicators that the ranks use for the first time in different orders, and persistent
 * collectives that they start in different orders. The advisor must count the calls of both
 * ranks that belong together as one collective. */
#include <mpi.h>

enum { COUNT = 1000, ROUNDS = 6 };

static double in[3][COUNT], out[3][COUNT];

int main(int argc, char** argv) {
  int rank;
  MPI_Comm comms[3];
  MPI_Request requests[3], plans[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[1]);
  MPI_Comm_idup(comms[0], &comms[2], requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  MPI_Allreduce_init(in[0], out[0], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &plans[0]);
  MPI_Bcast_init(out[1], COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[1]);
  for (int i = 0; i < ROUNDS; ++i) {
    for (int k = 0; k < 3; ++k) {
      const int which = rank == 0 ? k : 2 - k;
      if (which == 0)
        MPI_Iallreduce(in[0], out[0], COUNT, MPI_DOUBLE, MPI_SUM, comms[0], &requests[0]);
      else if (which == 1)
        MPI_Ibcast(out[1], COUNT, MPI_DOUBLE, 0, comms[1], &requests[1]);
      else
        MPI_Ireduce(in[2], out[2], COUNT, MPI_DOUBLE, MPI_MAX, 0, comms[2], &requests[2]);
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Start(&plans[rank]);
    MPI_Start(&plans[1 - rank]);
    MPI_Waitall(2, plans, MPI_STATUSES_IGNORE);
  }
  for (int k = 0; k < 2; ++k) MPI_Request_free(&plans[k]);
  for (int k = 0; k < 3; ++k) MPI_Comm_free(&comms[k]);
  MPI_Finalize();
  return 0;
}
