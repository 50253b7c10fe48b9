/* Sixteen threads of rank 0 wait at the same time for collectives that rank 1 starts late. */
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

enum { kThreads = 16, kLate_us = 1000000 };

static void* wait_for_all(void* data) {
  MPI_Comm* const comm = data;
  int one = 1, sum = 0, rank = 0;
  MPI_Request request;
  MPI_Comm_rank(*comm, &rank);
  if (rank == 1) usleep(kLate_us);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, *comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Comm comms[kThreads];
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, wait_for_all, &comms[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return 0;
}
