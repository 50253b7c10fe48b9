/* Usage: many_call_classes CALLS. It makes non-blocking collectives of 78 kinds and sizes, one
 * of each, then CALLS of the last three of these in turn, then all 78 once more. Results are
 * checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { KINDS = 6, SIZES = 13, SITES = KINDS * SIZES, RANKS = 8, MOST = 1 << (SIZES - 1) };

static int rank, ranks;
static int own[RANKS * MOST], got[RANKS * MOST];

static void start(int kind, int count, int root, MPI_Request* request) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  if (kind == 0) MPI_Iallreduce(own, got, count, MPI_INT, MPI_SUM, comm, request);
  if (kind == 1) MPI_Ireduce(own, got, count, MPI_INT, MPI_SUM, root, comm, request);
  if (kind == 2) MPI_Ibcast(rank == root ? own : got, count, MPI_INT, root, comm, request);
  if (kind == 3) MPI_Iallgather(own, count, MPI_INT, got, count, MPI_INT, comm, request);
  if (kind == 4) MPI_Ialltoall(own, count, MPI_INT, got, count, MPI_INT, comm, request);
  if (kind == 5) MPI_Iscan(own, got, count, MPI_INT, MPI_SUM, comm, request);
}

/* Returns what an element of the result must be if rank r contributes r + call. */
static int expected(int kind, int call, int root, int part) {
  const int sum_below = rank * (rank + 1) / 2 + (rank + 1) * call;
  const int sum = ranks * (ranks - 1) / 2 + ranks * call;
  if (kind == 2) return root + call;
  if (kind == 3 || kind == 4) return part + call;
  return kind == 5 ? sum_below : sum;
}

static int is_wrong(int kind, int count, int call) {
  const int root = call % ranks, parts = kind == 3 || kind == 4 ? ranks : 1;
  MPI_Request request;
  for (int i = 0; i < parts * count; ++i) {
    own[i] = rank + call;
    got[i] = -1;
  }
  start(kind, count, root, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (kind == 1 && rank != root) return 0;
  if (kind == 2 && rank == root) return 0;
  for (int i = 0; i < parts * count; ++i)
    if (got[i] != expected(kind, call, root, i / count)) return 1;
  return 0;
}

/* Returns whether call number `call` at the site was wrong. Sites with greater numbers have
 * shorter data. */
static int is_wrong_at(int site, int call) {
  return is_wrong(site % KINDS, MOST >> site / KINDS, call);
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  int wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int site = 0; site < SITES; ++site) wrong |= is_wrong_at(site, site);
  for (int call = 0; call < calls; ++call) wrong |= is_wrong_at(SITES - 1 - call % 3, call);
  for (int site = 0; site < SITES; ++site) wrong |= is_wrong_at(site, site);
  if (wrong) printf("rank %d: wrong\n", rank);
  MPI_Finalize();
  return wrong;
}
