// Tests short non-blocking collectives at the thread level that the library provides. At
// MPI_THREAD_MULTIPLE two threads make them, each on a communicator of its own. Argument: the
// number of calls.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int calls, rank, ranks;

typedef struct {
  MPI_Comm comm;
  int wrong;
} Caller;

static void* sum(void* argument) {
  Caller* const caller = argument;
  for (int i = 0; i < calls; ++i) {
    MPI_Request request;
    double mine = rank + i, all = 0;
    MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, caller->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    caller->wrong += all != ranks * (ranks - 1) / 2 + (double)i * ranks;
  }
  return NULL;
}

int main(int argc, char** argv) {
  int level;
  MPI_Init(&argc, &argv);
  MPI_Query_thread(&level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  calls = argc > 1 ? atoi(argv[1]) : 1000;
  Caller callers[2] = {{.wrong = 0}};
  pthread_t other;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &callers[i].comm);
  const int several = level == MPI_THREAD_MULTIPLE;
  if (several) pthread_create(&other, NULL, sum, &callers[1]);
  sum(&callers[0]);
  if (several) pthread_join(other, NULL);
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&callers[i].comm);
  const int wrong = callers[0].wrong + callers[1].wrong;
  if (rank == 0) printf("%s, %s\n", wrong ? "wrong" : "right", several ? "several" : "one");
  MPI_Finalize();
  return wrong != 0;
}
