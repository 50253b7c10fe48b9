/* Rank 0 waits in one call for several collectives, which rank 1 starts late. With an argument,
 * each rank then also polls persistent collectives, which rank 1 starts late, and prints how
 * many microseconds it was inside these polls. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { kOfEach = 4, kLate_us = 300000 };

/* Polls until all are complete. Returns how many microseconds it was inside the calls. */
static double poll(int count, MPI_Request* requests) {
  double us = 0;
  for (int done = 0; !done;) {
    const double began = MPI_Wtime();
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    us += (MPI_Wtime() - began) * 1e6;
  }
  return us;
}

int main(int argc, char** argv) {
  int rank = 0, one = 1, sums[kOfEach] = {0}, data[kOfEach] = {0}, right = 1;
  MPI_Request requests[2 * kOfEach];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) usleep(kLate_us);
  for (int i = 0; i < kOfEach; ++i) {
    data[i] = rank;
    MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i]);
    MPI_Ibcast(&data[i], 1, MPI_INT, 1, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
  MPI_Waitall(2 * kOfEach, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kOfEach; ++i) right = right && sums[i] == 2 && data[i] == 1;
  if (argc > 1) {
    for (int i = 0; i < kOfEach; ++i)
      MPI_Allreduce_init(&one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &requests[i]);
    if (rank == 1) usleep(kLate_us);
    MPI_Startall(kOfEach, requests);
    printf("polled %.0f\n", poll(kOfEach, requests));
    for (int i = 0; i < kOfEach; ++i) MPI_Request_free(&requests[i]);
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
