// Calls that look like the call before but differ in something on which the operation depends:
// contents of arrays at the same address, buffers in place or not, root, operator, type,
// communicator, and handles that MPI reuses for other types. (Handles reused for other
// communicators: communicators_in_turn.c.) Expected results are computed separately. Each rank
// prints "right", or what was wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "expected.h"

enum { kMost = 64, kRounds = 40 };

static double value(int of, int round, int i) {
  return of * 1000 + round * 10 + i % 7;
}

// The counts change in the array that all calls use.
static void with_arrays(int round) {
  static int counts[kMost], places[kMost];
  static double in[kMost * kMost], out[kMost * kMost];
  int all = 0, before = 0;
  for (int r = 0; r < ranks; ++r) {
    counts[r] = (round + r) % 3;
    places[r] = all + r;
    if (r < rank) before += counts[r];
    all += counts[r];
  }
  for (int i = 0; i < all; ++i) in[i] = value(rank, round, i);
  double sum_of_ranks = ranks * (ranks - 1) / 2.0;
  MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < counts[rank]; ++i)
    expect(out[i], sum_of_ranks * 1000 + ranks * (round * 10 + (before + i) % 7), "reduce_scatter",
           round);

  for (int i = 0; i < counts[rank]; ++i) in[i] = value(rank, round, i);
  MPI_Allgatherv(in, counts[rank], MPI_DOUBLE, out, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < counts[r]; ++i)
      expect(out[places[r] + i], value(r, round, i), "allgatherv", round);

  MPI_Request request;
  for (int r = 0; r < ranks; ++r) counts[r] = (round + r + rank) % 3, places[r] = 3 * r;
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < counts[r]; ++i) in[3 * r + i] = value(rank, round, r + i);
  MPI_Ialltoallv(in, counts, places, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, MPI_COMM_WORLD,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < counts[r]; ++i)
      expect(out[3 * r + i], value(r, round, rank + i), "ialltoallv", round);
}

static void without_arrays(int round, MPI_Comm* comms) {
  const MPI_Comm comm = comms[round % 2];
  const int root = round % ranks, count = 1 + round % 3;
  double data[3], result[3];
  for (int i = 0; i < count; ++i) data[i] = value(root, round, i) * (rank == root);
  MPI_Bcast(data, count, MPI_DOUBLE, root, comm);
  for (int i = 0; i < count; ++i) expect(data[i], value(root, round, i), "bcast", round);

  const int one = rank + 1;
  int number = round % 4 < 2 ? one : 0;
  const MPI_Op op = round % 3 == 0 ? MPI_SUM : round % 3 == 1 ? MPI_MAX : MPI_MIN;
  const int expected = round % 3 == 0 ? ranks * (ranks + 1) / 2 : round % 3 == 1 ? ranks : 1;
  MPI_Allreduce(round % 4 < 2 ? MPI_IN_PLACE : &one, &number, 1, MPI_INT, op, comm);
  expect(number, expected, "allreduce of integers", round);
  double real = rank + 1;
  MPI_Request request;
  MPI_Iallreduce(&real, result, 1, MPI_DOUBLE, op, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(result[0], expected, "iallreduce", round);
}

// Types are made and freed, so that MPI reuses their handles for other types.
static void with_other_types(int round) {
  int data[8] = {0};
  MPI_Datatype type;
  MPI_Type_vector(2, 1, 1 + round % 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (rank == 0)
    for (int i = 0; i < 8; ++i) data[i] = i + 1;
  MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD);
  expect(data[0], 1, "bcast of a type", round);
  expect(data[1 + round % 3], 2 + round % 3, "bcast of a type", round);
  MPI_Type_free(&type);
}

// Meanwhile other operations are in flight, some of them Weft's and some the MPI library's.
static void beside_others(int round, MPI_Request* persistent, const double* of_persistent) {
  static double long_in[4096], long_out[4096];
  for (int i = 0; i < 4096; ++i) long_in[i] = rank + round;
  MPI_Request requests[4];
  MPI_Start(persistent);
  MPI_Iallreduce(long_in, long_out, 4096, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  int data = rank == 0 ? round : -1, from = -1, own = rank * 100 + round;
  MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
  expect(data, round, "bcast beside others", round);
  MPI_Irecv(&from, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(&own, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(2, &requests[1], MPI_STATUSES_IGNORE);
  expect(from, (rank + ranks - 1) % ranks * 100 + round, "message", round);
  MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  expect(long_out[4095], ranks * (ranks - 1) / 2.0 + ranks * round, "long iallreduce", round);
  MPI_Wait(persistent, MPI_STATUS_IGNORE);
  expect(*of_persistent, ranks, "persistent", round);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm comms[2] = {MPI_COMM_WORLD};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  double one = 1, sum = 0;
  MPI_Request persistent;
  MPI_Allreduce_init(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &persistent);
  for (int round = 0; round < kRounds; ++round) {
    with_arrays(round);
    without_arrays(round, comms);
    if (round % 5 == 0) with_other_types(round);
    beside_others(round, &persistent, &sum);
  }
  MPI_Request_free(&persistent);
  MPI_Comm_free(&comms[1]);
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return wrong != 0;
}
