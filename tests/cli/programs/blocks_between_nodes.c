/* Usage: blocks_between_nodes CALLS COUNT NAMES. It calls each of the named collectives CALLS
 * times. Blocks have COUNT and 2 COUNT doubles in turn. Results are checked. Rank 0 prints how
 * many doubles must leave each of two nodes, if each node has half of the ranks in consecutive
 * order. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"

enum { MOST = 8 };

static int count;
static double *given, *taken;
static int counts[MOST], displacements[MOST], sent[MOST], sent_at[MOST], got[MOST], got_at[MOST];

static int share(int number) {
  return count * (number % 2 + 1);
}

static int sum(const int* numbers, int begin, int end) {
  int all = 0;
  for (int i = begin; i < end; ++i) all += numbers[i];
  return all;
}

static void prepare(void) {
  for (int i = 0; i < ranks; ++i) {
    counts[i] = share(i);
    sent[i] = got[i] = share(rank + i);
    displacements[i] = sum(counts, 0, i);
    sent_at[i] = got_at[i] = sum(sent, 0, i);
  }
  const size_t most = sizeof(double) * 2 * (size_t)(ranks * count);
  given = malloc(most);
  taken = malloc(most);
}

static void expect_sums(int length, int first, int call) {
  for (int i = 0; i < length; ++i)
    expect(taken[i], ranks * (double)(first + i + call) + ranks * (ranks - 1) / 2, "sum", call);
}

static void reduce_scatter_block(int call) {
  MPI_Request request;
  for (int i = 0; i < ranks * count; ++i) given[i] = rank + i + call;
  MPI_Ireduce_scatter_block(given, taken, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_sums(count, rank * count, call);
}

static void reduce_scatter(int call) {
  MPI_Request request;
  for (int i = 0; i < sum(counts, 0, ranks); ++i) given[i] = rank + i + call;
  MPI_Ireduce_scatter(given, taken, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_sums(counts[rank], displacements[rank], call);
}

static void allgatherv(int call) {
  MPI_Request request;
  for (int i = 0; i < counts[rank]; ++i) given[i] = rank + i + call;
  MPI_Iallgatherv(given, counts[rank], MPI_DOUBLE, taken, counts, displacements, MPI_DOUBLE,
                  MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < counts[from]; ++i)
      expect(taken[displacements[from] + i], from + i + call, "block", call);
}

static void alltoallv(int call) {
  MPI_Request request;
  for (int to = 0; to < ranks; ++to)
    for (int i = 0; i < sent[to]; ++i) given[sent_at[to] + i] = rank + 10 * to + i + call;
  MPI_Ialltoallv(given, sent, sent_at, MPI_DOUBLE, taken, got, got_at, MPI_DOUBLE, MPI_COMM_WORLD,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < got[from]; ++i)
      expect(taken[got_at[from] + i], from + 10 * rank + i + call, "block", call);
}

/* Returns the least number of doubles that must leave the node of rank 0. */
static long least(const char* name) {
  const int half = ranks / 2;
  if (!strcmp(name, "reduce_scatter_block")) return (long)half * count;
  if (!strcmp(name, "reduce_scatter")) return sum(counts, half, ranks);
  if (!strcmp(name, "allgatherv")) return sum(counts, 0, half);
  long all = 0;
  for (int from = 0; from < half; ++from)
    for (int to = half; to < ranks; ++to) all += share(from + to);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int calls = atoi(argv[1]);
  count = atoi(argv[2]);
  prepare();
  long each = 0;
  for (int i = 3; i < argc; ++i) {
    each += least(argv[i]);
    for (int call = 0; call < calls; ++call) {
      if (!strcmp(argv[i], "reduce_scatter_block")) reduce_scatter_block(call);
      if (!strcmp(argv[i], "reduce_scatter")) reduce_scatter(call);
      if (!strcmp(argv[i], "allgatherv")) allgatherv(call);
      if (!strcmp(argv[i], "alltoallv")) alltoallv(call);
    }
  }
  if (rank == 0) printf("%ld\n", each);
  free(given);
  free(taken);
  MPI_Finalize();
  return wrong != 0;
}
