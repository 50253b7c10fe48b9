// A communicator made by MPI_Comm_idup. On it there is a non-blocking collective before and after
// its first persistent one.
#include <mpi.h>
#include <stdio.h>

static int wrong = 0;

static void check(int sum, MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  wrong += sum != size;
}

static void sum_once(MPI_Comm comm) {
  MPI_Request request;
  int one = 1, sum = 0;
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum, comm);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  MPI_Request request;
  int one = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  sum_once(comm);
  MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum, comm);
  sum_once(comm);
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (wrong) printf("%d wrong sums\n", wrong);
  return wrong != 0;
}
