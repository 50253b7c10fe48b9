// Communicators of the same and of other ranks, which are made and freed in a pseudo-random order.
// Each has short and long collectives, and requests that outlive it. Expected results are computed
// separately. Arguments: the number of communicators; "short": all communicators have all ranks and
// are used one after the other, each by one short collective. Each rank prints "right", or what was
// wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"

enum { kAlive = 6, kLong = 60000 };

// Returns a pseudo-random number below `below`. All ranks get the same numbers.
static unsigned chance(unsigned below) {
  static unsigned long long state = 12345;
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % below;
}

static MPI_Comm made(unsigned kind) {
  MPI_Comm comm;
  if (kind < 2) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (kind == 2) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);  // the ranks in reverse order
  if (kind == 3) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
  if (kind == 4) MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &comm);
  if (kind == 5) MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  return comm;
}

static void use(MPI_Comm comm, int number, int is_long) {
  static double in[kLong], out[kLong];
  int own, size, count = is_long ? kLong : 1 + number % 5;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < count; ++i) in[i] = own + number + i % 3;
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < count; ++i)
    expect(out[i], size * (size - 1) / 2 + size * (double)(number + i % 3), "allreduce", number);
  const int root = number % size;
  for (int i = 0; i < count; ++i) in[i] = own == root ? number * 2 + i % 7 : -1;
  MPI_Request request;
  MPI_Ibcast(in, count, MPI_DOUBLE, root, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < count; ++i) expect(in[i], number * 2 + i % 7, "bcast", number);
  in[0] = own == 0 ? 0 : own + number;
  MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_MAX, root, comm);
  if (own == root) expect(out[0], size == 1 ? 0 : size - 1 + number, "reduce", number);
}

// Makes a persistent collective, uses it twice and frees the communicator. The caller frees the
// request later.
static void outlive(MPI_Comm* comm, int number, MPI_Request* request, double* in, double* out) {
  int size;
  MPI_Comm_size(*comm, &size);
  MPI_Allreduce_init(in, out, 1, MPI_DOUBLE, MPI_SUM, *comm, MPI_INFO_NULL, request);
  for (int i = 0; i < 2; ++i) {
    *in = number + i;
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    expect(*out, size * (double)(number + i), "persistent", number);
  }
  MPI_Comm_free(comm);
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 100;
  const int only_short = argc > 2 && strcmp(argv[2], "short") == 0;
  MPI_Comm alive[kAlive];
  MPI_Request lasting[kAlive];
  static double in[kAlive], out[kAlive];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kAlive; ++i) {
    alive[i] = MPI_COMM_NULL;
    lasting[i] = MPI_REQUEST_NULL;
  }
  for (int number = 0; number < count; ++number) {
    const unsigned place = only_short ? 0 : chance(kAlive);
    if (lasting[place] != MPI_REQUEST_NULL) MPI_Request_free(&lasting[place]);
    if (alive[place] != MPI_COMM_NULL) MPI_Comm_free(&alive[place]);
    alive[place] = made(only_short ? 0 : chance(6));
    use(alive[place], number, !only_short && chance(4) == 0);
    const unsigned other = only_short ? 0 : chance(kAlive);
    if (alive[other] != MPI_COMM_NULL) use(alive[other], number, 0);
    if (!only_short && chance(5) == 0)
      outlive(&alive[place], number, &lasting[place], &in[place], &out[place]);
  }
  for (int i = 0; i < kAlive; ++i) {
    if (lasting[i] != MPI_REQUEST_NULL) MPI_Request_free(&lasting[i]);
    if (alive[i] != MPI_COMM_NULL) MPI_Comm_free(&alive[i]);
  }
  if (wrong == 0) printf("right\n");
  MPI_Finalize();
  return wrong != 0;
}
