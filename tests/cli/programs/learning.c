/* learning CALLS DEPTH: MPI_Iallreduce and MPI_Ibcast in turns, DEPTH of each in flight, with a
 * little time between; results are checked. With a third word one more MPI_Iallreduce follows each
 * DEPTH calls, by an operator of the program's own, which must run on the program's thread. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t main_thread;
static int elsewhere;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((double*)inout)[i] += ((double*)in)[i];
  if (!pthread_equal(pthread_self(), main_thread)) elsewhere = 1;
}

enum { COUNT = 4096, MOST = 80 };

int main(int argc, char** argv) {
  static double own[MOST][COUNT], sum[MOST][COUNT], told[MOST][COUNT];
  const int calls = argc > 1 ? atoi(argv[1]) : 100, depth = argc > 2 ? atoi(argv[2]) : 1;
  static double more[COUNT], more_sum[COUNT];
  const int own_operator = argc > 3;
  MPI_Request requests[2 * MOST + 1];
  MPI_Op op;
  int rank, ranks, wrong = 0;
  MPI_Init(&argc, &argv);
  main_thread = pthread_self();
  MPI_Op_create(add, 1, &op);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < calls; call += depth) {
    for (int i = 0; i < depth; ++i) {
      for (int k = 0; k < COUNT; ++k) {
        own[i][k] = rank + call + i + k;
        told[i][k] = rank == call % ranks ? call + i + k : -1;
      }
      MPI_Iallreduce(own[i], sum[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i]);
      MPI_Ibcast(told[i], COUNT, MPI_DOUBLE, call % ranks, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    if (own_operator)
      MPI_Iallreduce(more, more_sum, COUNT, MPI_DOUBLE, op, MPI_COMM_WORLD, &requests[2 * depth]);
    usleep(own_operator ? 20000 : 500);
    MPI_Waitall(2 * depth + own_operator, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < depth; ++i)
      for (int k = 0; k < COUNT; ++k) {
        const double expected = ranks * (ranks - 1) / 2.0 + (double)ranks * (call + i + k);
        if (sum[i][k] != expected || told[i][k] != call + i + k) wrong = 1;
      }
    if (call % 40 == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Op_free(&op);
  if (elsewhere) printf("rank %d: the operator ran on another thread\n", rank);
  if (wrong) printf("rank %d: wrong\n", rank);
  MPI_Finalize();
  return wrong || elsewhere;
}
