/* Usage: holes CALLS. It tests collectives that only move data: CALLS non-blocking ones of each
 * kind, in turn, and as many starts of a persistent one. Rank 0 has integers. The other ranks
 * have vectors with holes, or structures. Some calls are in place. The contents of the holes
 * must not change. Types are freed while they are in use. In each call one rank blocks in the
 * library until the others have completed the call. The buffers of persistent collectives cannot
 * be touched during the initialisation. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { COUNT = 48 * 1024, RANKS = 4, HOLE = -7 };
enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, KINDS };

static int rank, ranks, wrong;

/* A buffer of `blocks` blocks, each with COUNT integers in this rank's type. */
struct buffer {
  MPI_Datatype type; /* two integers; on rank 0 one */
  int count;         /* elements of `type` in a block */
  int stride;        /* from a pair of integers to the next, in integers */
  int blocks;
  int* memory;
};

static size_t bytes_of(const struct buffer* b) {
  return (size_t)b->blocks * COUNT / 2 * b->stride * sizeof(int);
}

static struct buffer made(int blocks) {
  struct buffer b = {MPI_INT, COUNT, 2, blocks, NULL};
  if (rank > 0) {
    b.count = COUNT / 2;
    b.stride = rank % 2 ? 4 : 3;
    if (rank % 2) {
      MPI_Datatype vector;
      MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
      MPI_Type_create_resized(vector, 0, 4 * sizeof(int), &b.type);
      MPI_Type_free(&vector);
    } else {
      int lengths[2] = {1, 1};
      MPI_Aint places[2] = {2 * sizeof(int), 0}; /* the second integer comes first in memory */
      MPI_Datatype types[2] = {MPI_INT, MPI_INT}, pair;
      MPI_Type_create_struct(2, lengths, places, types, &pair);
      MPI_Type_create_resized(pair, 0, 3 * sizeof(int), &b.type);
      MPI_Type_free(&pair);
    }
    MPI_Type_commit(&b.type);
  }
  b.memory = mmap(NULL, bytes_of(&b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return b;
}

static int* at(const struct buffer* b, int block, int k) {
  int* pair = b->memory + ((size_t)block * COUNT + k) / 2 * b->stride;
  if (rank == 0) return pair + k % 2;
  return pair + (rank % 2 ? 2 * (k % 2) : 2 * (1 - k % 2));
}

static void clear(const struct buffer* b) {
  for (size_t i = 0; i < bytes_of(b) / sizeof(int); ++i) b->memory[i] = HOLE;
}

static void fill(const struct buffer* b, int block, int value) {
  for (int k = 0; k < COUNT; ++k) *at(b, block, k) = value + k;
}

static void check(const struct buffer* b, int block, int value) {
  for (int k = 0; k < COUNT; ++k)
    if (*at(b, block, k) != value + k) wrong = 1;
}

static void check_holes(const struct buffer* b) {
  size_t holes = 0;
  for (size_t i = 0; i < bytes_of(b) / sizeof(int); ++i) holes += b->memory[i] == HOLE;
  if (holes != (size_t)b->blocks * COUNT / 2 * (b->stride - 2)) wrong = 1;
}

/* Returns the value that `from` sends to `to`. */
static int value(int call, int from, int to) {
  return 1000 * call + 100 * from + 10 * to;
}

struct collective {
  int kind, root, in_place;
  struct buffer send, recv;
};

static struct collective prepared(int kind, int root, int in_place) {
  struct collective c = {kind, root, in_place,
                         made(kind == SCATTER || kind == ALLTOALL ? ranks : 1),
                         made(kind == BCAST || kind == SCATTER ? 1 : ranks)};
  return c;
}

static void write_input(const struct collective* c, int call) {
  clear(&c->send);
  clear(&c->recv);
  fill(&c->send, 0, value(call, rank, 0));
  for (int to = 0; to < c->send.blocks; ++to) fill(&c->send, to, value(call, rank, to));
  for (int block = 0; block < c->recv.blocks; ++block)
    fill(&c->recv, block, c->in_place ? value(call, rank, c->kind == ALLTOALL ? block : 0) : 1);
  if (c->kind == BCAST && rank == c->root) fill(&c->recv, 0, value(call, rank, 0));
}

static void check_output(const struct collective* c, int call) {
  const int is_root = rank == c->root;
  check_holes(&c->recv);
  if (c->kind == BCAST) check(&c->recv, 0, value(call, c->root, 0));
  if (c->kind == SCATTER && !(is_root && c->in_place))
    check(&c->recv, 0, value(call, c->root, rank));
  for (int from = 0; from < ranks; ++from) {
    if (c->kind == ALLGATHER || (c->kind == GATHER && is_root))
      check(&c->recv, from, value(call, from, 0));
    if (c->kind == ALLTOALL) check(&c->recv, from, value(call, from, rank));
  }
}

static void begin(const struct collective* c, int persistent, MPI_Request* request) {
  const struct buffer *s = &c->send, *r = &c->recv;
  const int here = c->in_place && (rank == c->root || c->kind == ALLGATHER || c->kind == ALLTOALL);
  const void* from = here && c->kind != SCATTER ? MPI_IN_PLACE : s->memory;
  void* to = here && c->kind == SCATTER ? MPI_IN_PLACE : r->memory;
  const MPI_Comm w = MPI_COMM_WORLD;
#define CALL(name, ...)                                        \
  if (persistent)                                              \
    MPI_##name##_init(__VA_ARGS__, w, MPI_INFO_NULL, request); \
  else                                                         \
    MPI_I##name(__VA_ARGS__, w, request)
#define MPI_bcast_init MPI_Bcast_init
#define MPI_gather_init MPI_Gather_init
#define MPI_scatter_init MPI_Scatter_init
#define MPI_allgather_init MPI_Allgather_init
#define MPI_alltoall_init MPI_Alltoall_init
  switch (c->kind) {
    case BCAST:
      CALL(bcast, r->memory, r->count, r->type, c->root);
      break;
    case GATHER:
      CALL(gather, from, s->count, s->type, r->memory, r->count, r->type, c->root);
      break;
    case SCATTER:
      CALL(scatter, s->memory, s->count, s->type, to, r->count, r->type, c->root);
      break;
    case ALLGATHER:
      CALL(allgather, from, s->count, s->type, r->memory, r->count, r->type);
      break;
    default:
      CALL(alltoall, from, s->count, s->type, r->memory, r->count, r->type);
  }
}

static void drop(struct collective* c) {
  if (rank == 0) return;
  MPI_Type_free(&c->send.type);
  MPI_Type_free(&c->recv.type);
}

static void release(struct collective* c) {
  munmap(c->send.memory, bytes_of(&c->send));
  munmap(c->recv.memory, bytes_of(&c->recv));
}

static void protect(const struct collective* c, int how) {
  mprotect(c->send.memory, bytes_of(&c->send), how);
  mprotect(c->recv.memory, bytes_of(&c->recv), how);
}

/* Completes the requests. The rank `late` first waits in the library until the others have
 * completed theirs. */
static void complete(int late, int count, MPI_Request* requests) {
  int token = 0;
  for (int from = 0; rank == late && from < ranks; ++from)
    if (from != late) MPI_Recv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  if (rank != late) MPI_Send(&token, 1, MPI_INT, late, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 10;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int call = 0; call < calls; ++call) {
    struct collective all[KINDS];
    MPI_Request requests[KINDS];
    for (int kind = 0; kind < KINDS; ++kind) {
      all[kind] = prepared(kind, call % ranks, call % 3 == 1);
      write_input(&all[kind], call);
      begin(&all[kind], 0, &requests[kind]);
      drop(&all[kind]);
    }
    complete((call + 1) % ranks, KINDS, requests);
    for (int kind = 0; kind < KINDS; ++kind) {
      check_output(&all[kind], call);
      release(&all[kind]);
    }
  }
  for (int kind = 0; kind < KINDS; ++kind) {
    struct collective c = prepared(kind, ranks - 1, kind % 2);
    MPI_Request request;
    protect(&c, PROT_NONE);
    begin(&c, 1, &request);
    protect(&c, PROT_READ | PROT_WRITE);
    drop(&c);
    for (int call = 0; call < calls; ++call) {
      write_input(&c, call);
      MPI_Start(&request);
      complete(call % ranks, 1, &request);
      check_output(&c, call);
    }
    MPI_Request_free(&request);
    release(&c);
  }
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong;
}
