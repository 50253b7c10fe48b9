// Usage: plans [few]. It compares persistent collectives of several lengths with the MPI library's
// blocking ones. The initialisation of persistent collectives must leave the application's buffers
// unchanged. few: tests only every other kind with every other length.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 150 * 1000, STARTS = 3, KINDS = 6 };

static int rank, size;
static double *in, *out, *before, *expected;

static int all_counts(int count) {
  return count * size;
}

static void init(int kind, int count, MPI_Request* request) {
  const MPI_Datatype t = MPI_DOUBLE;
  const MPI_Comm c = MPI_COMM_WORLD;
  const MPI_Info i = MPI_INFO_NULL;
  if (kind == 0) MPI_Allreduce_init(in, out, count, t, MPI_SUM, c, i, request);
  if (kind == 1) MPI_Bcast_init(out, count, t, 1, c, i, request);
  if (kind == 2) MPI_Allgather_init(in, count, t, out, count, t, c, i, request);
  if (kind == 3) MPI_Alltoall_init(in, count, t, out, count, t, c, i, request);
  if (kind == 4) MPI_Reduce_scatter_block_init(in, out, count, t, MPI_SUM, c, i, request);
  if (kind == 5) MPI_Scan_init(in, out, count, t, MPI_SUM, c, i, request);
}

static void blocking(int kind, int count) {
  const MPI_Datatype t = MPI_DOUBLE;
  const MPI_Comm c = MPI_COMM_WORLD;
  if (kind == 0) PMPI_Allreduce(in, expected, count, t, MPI_SUM, c);
  if (kind == 1) PMPI_Bcast(expected, count, t, 1, c);
  if (kind == 2) PMPI_Allgather(in, count, t, expected, count, t, c);
  if (kind == 3) PMPI_Alltoall(in, count, t, expected, count, t, c);
  if (kind == 4) PMPI_Reduce_scatter_block(in, expected, count, t, MPI_SUM, c);
  if (kind == 5) PMPI_Scan(in, expected, count, t, MPI_SUM, c);
}

static void fill(double* buffer, int seed) {
  for (int i = 0; i < all_counts(MOST); ++i) buffer[i] = (i * 7 + seed * 31 + rank * 13) % 1000;
}

static int is_as(const double* buffer, const double* other) {
  return memcmp(buffer, other, sizeof(double) * (size_t)all_counts(MOST)) == 0;
}

// Tests one collective. Returns the number of errors.
static int check(int kind, int count) {
  MPI_Request request;
  int wrong = 0;
  fill(in, 1);
  fill(out, 2);
  memcpy(before, in, sizeof(double) * (size_t)all_counts(MOST));
  fill(expected, 2);
  init(kind, count, &request);
  wrong += !is_as(in, before) + !is_as(out, expected);
  for (int start = 0; start < STARTS; ++start) {
    fill(in, start);
    fill(out, 5);
    fill(expected, 5);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    blocking(kind, count);
    wrong += !is_as(out, expected);
  }
  MPI_Request_free(&request);
  return wrong;
}

int main(int argc, char** argv) {
  const int counts[] = {1, 900, 20 * 1000, MOST};
  const int step = argc > 1 && strcmp(argv[1], "few") == 0 ? 2 : 1;
  int wrong = 0, checked = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double** buffers[] = {&in, &out, &before, &expected};
  for (int i = 0; i < 4; ++i) *buffers[i] = malloc(sizeof(double) * (size_t)all_counts(MOST));
  for (int kind = 0; kind < KINDS; kind += step)
    for (int i = 0; i < 4; i += step, ++checked) wrong += check(kind, counts[i]);
  PMPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d collectives, %d wrong\n", checked, all);
  MPI_Finalize();
  return 0;
}
