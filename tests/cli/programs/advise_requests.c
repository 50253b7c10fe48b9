/* Requests that are completed in all ways. Usage: advise_requests many|persistent|some. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 300, ROUNDS = 12 };

static MPI_Request requests[MANY + 1];
static double in[MANY], out[MANY], sum;

/* Completes more requests in one call than the advisor has room for beside a call. The
 * collective's request is the last one. */
static void many(int other) {
  double one = 1;
  for (int i = 0; i < MANY / 2; ++i) {
    MPI_Irecv(out + i, 1, MPI_DOUBLE, other, i, MPI_COMM_WORLD, requests + 2 * i);
    MPI_Isend(in + i, 1, MPI_DOUBLE, other, i, MPI_COMM_WORLD, requests + 2 * i + 1);
  }
  MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests + MANY);
  MPI_Waitall(MANY + 1, requests, MPI_STATUSES_IGNORE);
}

/* Completes persistent requests, whose handles do not become MPI_REQUEST_NULL. */
static void persistent(int other) {
  int index, count, indices[4];
  MPI_Recv_init(out, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, requests);
  MPI_Send_init(in, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, requests + 1);
  MPI_Recv_init(out + 1, 1, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, requests + 2);
  MPI_Send_init(in + 1, 1, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, requests + 3);
  MPI_Startall(4, requests);
  MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
  for (int flag = 0; !flag;) MPI_Testany(4, requests, &index, &flag, MPI_STATUS_IGNORE);
  for (int done = 2; done < 4; done += count)
    MPI_Waitsome(4, requests, &count, indices, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 4; ++i) MPI_Request_free(requests + i);
}

static void some(int other) {
  double one = other >= 0;
  int count = 0, indices[1];
  MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests);
  while (!count) MPI_Testsome(1, requests, &count, indices, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* how = argv[argc - 1];
  /* The first and the last page of the result also hold other memory of the heap. */
  double* result = (double*)malloc(5000 * sizeof *result) + 100;
  for (int i = 0; i < ROUNDS; ++i) {
    (strcmp(how, "many") == 0 ? many : strcmp(how, "some") == 0 ? some : persistent)(1 - rank);
    MPI_Allreduce(in, result, 200, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    sum += result[7];
  }
  MPI_Finalize();
  return 0;
}
