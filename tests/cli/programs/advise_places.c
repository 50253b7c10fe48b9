/* Places where results are used and where send buffers are written, calls with changing
 * arguments, persistent calls, and waits for several requests. Usage: advise_places CALLS
 * [planned|halo]. It prints a checksum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise_busy.h"

enum { COUNT = 20000, MESSAGES = 3 };

static double *in, *out, *copy;
static int rank, ranks;

__attribute__((noinline)) static double first_of(const double* values) {
  return values[0]; /* used here */
}
__attribute__((noinline)) static void read_case(int round) {
  for (int i = 0; i < COUNT; ++i) in[i] = (i + round) % 17; /* written here */
  busy(1);
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  busy(1);
  sink += first_of(out);
}
__attribute__((noinline)) static void copy_case(int round) {
  in[0] = round;
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  busy(1);
  memcpy(copy, out, COUNT * sizeof *copy); /* copied here */
  sink += copy[round];
}
__attribute__((noinline)) static void mpi_case(int round) {
  MPI_Bcast(out, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  busy(1);
  MPI_Reduce(out, copy, COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); /* given here */
  sink += copy[round];
}
__attribute__((noinline)) static void roots_case(int round) {
  MPI_Bcast(copy, 100, MPI_DOUBLE, round % ranks, MPI_COMM_WORLD);
}
__attribute__((noinline)) static void same_case(void) {
  MPI_Bcast(copy, 100, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
/* The messages take long, the collective takes no time. */
__attribute__((noinline)) static void wait_case(void) {
  MPI_Request requests[1 + MESSAGES];
  MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  for (int i = 0; i < MESSAGES; ++i)
    MPI_Irecv(copy + i, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, i, MPI_COMM_WORLD,
              &requests[1 + i]);
  if (rank) busy(2);
  for (int i = 0; i < MESSAGES; ++i)
    MPI_Send(in + i, 1, MPI_DOUBLE, (rank + 1) % ranks, i, MPI_COMM_WORLD);
  MPI_Waitall(1 + MESSAGES, requests, MPI_STATUSES_IGNORE);
}
__attribute__((noinline)) static void freed_case(void) {
  MPI_Request request;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Bcast_init(out, 1, MPI_DOUBLE, 0, comm, MPI_INFO_NULL, &request);
  MPI_Comm_free(&comm);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}
__attribute__((noinline)) static void planned_case(int calls) {
  MPI_Request request;
  MPI_Allreduce_init(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < calls; ++i) {
    MPI_Start(&request);
    busy(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sink += out[i];
  }
  MPI_Request_free(&request);
}

static void start_halo(MPI_Request* requests) {
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  MPI_Irecv(copy, COUNT, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[1]);
}
/* Messages that are waited for at once, tested, and persistent ("planned"). Rank 0 comes late. */
static void halo_cases(int calls) {
  MPI_Request now_[2], tested[2], planned[2];
  MPI_Recv_init(copy, 100, MPI_DOUBLE, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &planned[0]);
  MPI_Send_init(in, 100, MPI_DOUBLE, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &planned[1]);
  for (int i = 0; i < calls; ++i) {
    if (!rank) busy(3);
    start_halo(now_);
    MPI_Waitall(2, now_, MPI_STATUSES_IGNORE); /* at once */
    start_halo(tested);
    for (int flag = 0; !flag;) MPI_Testall(2, tested, &flag, MPI_STATUSES_IGNORE); /* tested */
    MPI_Startall(2, planned);
    busy(1);
    for (int k = 0; k < 2; ++k) MPI_Wait(&planned[k], MPI_STATUS_IGNORE); /* planned */
  }
  for (int k = 0; k < 2; ++k) MPI_Request_free(&planned[k]);
}
/* Messages so short that a library may send them at once and give all of them the same request. */
static void short_case(int calls) {
  const int other = (rank + 1) % ranks;
  MPI_Request requests[8];
  for (int i = 0; i < calls; ++i) {
    for (int k = 0; k < 4; ++k) {
      MPI_Irecv(copy + k, 1, MPI_DOUBLE, other, k, MPI_COMM_WORLD, &requests[k]);
      MPI_Isend(in + k, 1, MPI_DOUBLE, other, k, MPI_COMM_WORLD, &requests[4 + k]);
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE); /* short */
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int calls = atoi(argv[1]);
  const char* which = argc > 2 ? argv[2] : "all";
  in = calloc(COUNT, sizeof *in);
  out = calloc(COUNT, sizeof *out);
  copy = calloc(COUNT, sizeof *copy);
  if (strcmp(which, "halo") == 0) {
    halo_cases(calls);
    short_case(calls);
  }
  if (strcmp(which, "all") == 0) {
    for (int i = 0; i < calls; ++i) read_case(i);
    for (int i = 0; i < calls; ++i) copy_case(i);
    for (int i = 0; i < calls; ++i) mpi_case(i);
    for (int i = 0; i < calls; ++i) roots_case(i);
    for (int i = 0; i < calls; ++i) same_case();
    for (int i = 0; i < calls; ++i) wait_case();
  }
  if (strcmp(which, "planned") == 0) {
    planned_case(calls);
    freed_case();
  }
  if (rank == 0) printf("checksum %.3f\n", out[3] + copy[5]);
  MPI_Finalize();
  return 0;
}
