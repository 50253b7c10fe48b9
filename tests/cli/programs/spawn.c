// Two processes share a communicator with two processes that they spawn. The spawned ones do not
// load Weft, since `weft run` preloads it in the first two only.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Comm other, all;
  MPI_Request request;
  int one = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&other);
  const int spawned = other != MPI_COMM_NULL;
  if (!spawned)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                   MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(other, spawned, &all);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (!spawned) printf("%d processes\n", sum);
  MPI_Comm_disconnect(&all);
  MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return 0;
}
