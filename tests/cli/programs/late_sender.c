/* Legal programs at MPI_THREAD_SINGLE in which a rank blocks in the MPI library while other
 * ranks wait for its part of a collective. The collective is completed in every way. Rank 0
 * prints "right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20, WAYS = 6 };

static int rank, ranks;
static double *in, *out;

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void complete(int way, MPI_Request* request) {
  MPI_Request both[2] = {*request, MPI_REQUEST_NULL};
  int flag = 0, index = 0, done = 0, indices[2];
  if (way == 0) MPI_Wait(both, MPI_STATUS_IGNORE);
  while (way == 1 && !flag) MPI_Test(both, &flag, MPI_STATUS_IGNORE);
  if (way == 2) MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  if (way == 3) MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
  while (way == 4 && done < 1) MPI_Testsome(2, both, &done, indices, MPI_STATUSES_IGNORE);
  while (way == 5 && !flag) MPI_Request_get_status(*both, &flag, MPI_STATUS_IGNORE);
  if (way == 5) MPI_Wait(both, MPI_STATUS_IGNORE);
  *request = both[0];
}

/* Rank 0 makes no call for its collective until the other ranks have completed theirs and have
 * sent it a message. */
static void block_then_complete(int way, MPI_Request* request) {
  int token = way;
  if (rank == 0) {
    for (int from = 1; from < ranks; ++from)
      MPI_Recv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    complete(way, request);
  } else {
    complete(way, request);
    MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
}

static void check(const char* what, double expected) {
  for (int i = 0; i < COUNT; i += 997)
    if (out[i] != expected + i) fail(what);
}

static void clear(void) {
  for (int i = 0; i < COUNT; ++i) out[i] = -1;
}

int main(int argc, char** argv) {
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  in = malloc(COUNT * sizeof *in);
  out = malloc(COUNT * sizeof *out);
  for (int i = 0; i < COUNT; ++i) in[i] = i / (double)ranks;
  for (int way = 0; way < WAYS; ++way) {
    clear();
    MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    block_then_complete(way, &request);
    if (ranks == 2) check("MPI_Iallreduce", 0);
    clear();
    MPI_Ireduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, ranks - 1, MPI_COMM_WORLD, &request);
    block_then_complete(way, &request);
    if (ranks == 2 && rank == 1) check("MPI_Ireduce", 0);
  }
  MPI_Allreduce_init(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int way = 0; way < WAYS; ++way) {
    clear();
    MPI_Start(&request);
    block_then_complete(way, &request);
    if (ranks == 2) check("MPI_Allreduce_init", 0);
  }
  MPI_Request_free(&request);
  if (rank == 0) printf("right\n");
  MPI_Finalize();
  return 0;
}
