// Usage: kept_plans FILE. It makes persistent collectives of all ranks, and of all ranks but the
// first. It prints whether FILE exists before the job ends.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static void initialise(int count, MPI_Comm comm) {
  static double in[100000], out[100000];
  MPI_Request request;
  MPI_Allreduce_init(in, out, count, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &request);
  MPI_Request_free(&request);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Comm others;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &others);
  initialise(1000, MPI_COMM_WORLD);
  if (rank > 0) initialise(20000, others);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("before the end: %s\n", access(argv[1], F_OK) == 0 ? "there" : "not there");
  fflush(stdout);
  MPI_Comm_free(&others);
  MPI_Finalize();
  return 0;
}
