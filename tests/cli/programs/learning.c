/* Usage: learning CALLS DEPTH [blocking [US]|mixed|OTHER]. It calls MPI_Iallreduce and
 * MPI_Ibcast in turn, DEPTH of each in flight, and computes a little between. Results are
 * checked. blocking: all calls are blocking ones, and in each of them a rank is late, by US
 * microseconds (200 by default). mixed: some blocking calls follow while the others are in
 * flight. With any other word, one more MPI_Iallreduce follows each DEPTH calls, with a
 * user-defined operator, which must run on the program's thread. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_t main_thread;
static int elsewhere;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((double*)inout)[i] += ((double*)in)[i];
  if (!pthread_equal(pthread_self(), main_thread)) elsewhere = 1;
}

#ifndef COUNT
#define COUNT 4096
#endif

enum { MOST = 80 };

int main(int argc, char** argv) {
  static double own[MOST][COUNT], sum[MOST][COUNT], told[MOST][COUNT];
  const int calls = argc > 1 ? atoi(argv[1]) : 100, depth = argc > 2 ? atoi(argv[2]) : 1;
  static double more[COUNT], more_sum[COUNT];
  const int blocking = argc > 3 && strcmp(argv[3], "blocking") == 0;
  const int mixed = argc > 3 && strcmp(argv[3], "mixed") == 0;
  const int late_us = argc > 4 ? atoi(argv[4]) : 200;
  const int own_operator = argc > 3 && !blocking && !mixed;
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
      if (blocking) {
        if (call % ranks == rank) usleep(late_us);
        MPI_Allreduce(own[i], sum[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (call % ranks == rank) usleep(late_us);
        MPI_Bcast(told[i], COUNT, MPI_DOUBLE, call % ranks, MPI_COMM_WORLD);
        continue;
      }
      MPI_Iallreduce(own[i], sum[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i]);
      MPI_Ibcast(told[i], COUNT, MPI_DOUBLE, call % ranks, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    for (int i = 0; mixed && i < 3; ++i) {
      if ((call + i) % ranks == rank) usleep(200);
      MPI_Allreduce(own[0], more_sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      for (int k = 0; k < COUNT; ++k)
        if (more_sum[k] != ranks * (ranks - 1) / 2.0 + (double)ranks * (call + k)) wrong = 1;
    }
    if (own_operator)
      MPI_Iallreduce(more, more_sum, COUNT, MPI_DOUBLE, op, MPI_COMM_WORLD, &requests[2 * depth]);
    usleep(own_operator ? 20000 : 500);
    if (!blocking) MPI_Waitall(2 * depth + own_operator, requests, MPI_STATUSES_IGNORE);
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
