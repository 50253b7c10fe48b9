/* Usage: message_cost TIMES COUNT. It makes each call that starts or completes messages TIMES
 * times with COUNT doubles. Rank 1 answers each message. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int times = atoi(argv[1]), count = atoi(argv[2]);
  int rank, flag, index, done, indices[2];
  double *out = calloc(count, sizeof *out), *in = calloc(count, sizeof *in);
  MPI_Request requests[2], persistent[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  MPI_Recv_init(in, count, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &persistent[0]);
  MPI_Send_init(out, count, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &persistent[1]);
  for (int i = 0; i < times; ++i) {
    for (int way = 0; way < 7; ++way) {
      MPI_Irecv(in, count, MPI_DOUBLE, other, way, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(out, count, MPI_DOUBLE, other, way, MPI_COMM_WORLD, &requests[1]);
      if (way == 0) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      if (way == 1) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
      if (way == 2) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
      if (way == 3) MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
      if (way == 4) MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
      if (way == 5) MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      if (way == 6) MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Iprobe(other, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Start(&persistent[0]);
    MPI_Startall(1, &persistent[1]);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  MPI_Finalize();
  free(out);
  free(in);
  return 0;
}
