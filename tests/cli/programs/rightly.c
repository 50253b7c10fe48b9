// Correct programs with operations in flight. A checker that sees too little or too much would
// report them as wrong. There is one program in each function. They print nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1 << 16, PAGE = 4096 };
static int rank, peer;
static double *in, *out;

static double* pages(void) {
  void* found = NULL;
  if (posix_memalign(&found, PAGE, COUNT * sizeof(double)) != 0) abort();
  memset(found, 0, COUNT * sizeof(double));
  return found;
}

static void check(int right) {
  if (!right) MPI_Abort(MPI_COMM_WORLD, 3);
}

static int find(struct dl_phdr_info* object, size_t size, void* library) {
  (void)size;
  if (strstr(object->dlpi_name, "/libmpi.so"))
    *(void**)library = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
  return 0;
}

// MPI_Wait is looked up by dlsym(), as interpreters do.
static void wait_is_looked_up(void) {
  void* library = NULL;
  int (*wait)(MPI_Request*, MPI_Status*);
  MPI_Request request;
  dl_iterate_phdr(find, &library);
  void* const found = dlsym(library, "MPI_Wait");
  memcpy(&wait, &found, sizeof wait);
  for (int i = 0; i < 3; ++i) {
    in[0] = i;
    MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    wait(&request, MPI_STATUS_IGNORE);
    check(out[0] == 2 * i);
  }
}

static jmp_buf back;
static void jumps(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  longjmp(back, 1);
}

// MPI_Wait completes the receive, whose message is too long. The error handler leaves MPI_Wait by
// longjmp().
static void wait_is_left(void) {
  static double one, two[2];
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(jumps, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Sendrecv(two, 2, MPI_DOUBLE, peer, 1, NULL, 0, MPI_DOUBLE, MPI_PROC_NULL, 1, comm,
               MPI_STATUS_IGNORE);
  if (!setjmp(back)) {
    MPI_Irecv(&one, 1, MPI_DOUBLE, peer, 1, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(0);
  }
  MPI_Errhandler_free(&handler);
}

// MPI_Wait returns an error. The request remains, since it is persistent.
static void wait_fails(void) {
  static double one, two[2];
  MPI_Request request;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Recv_init(&one, 1, MPI_DOUBLE, peer, 2, comm, &request);
  MPI_Start(&request);
  MPI_Sendrecv(two, 2, MPI_DOUBLE, peer, 2, NULL, 0, MPI_DOUBLE, MPI_PROC_NULL, 2, comm,
               MPI_STATUS_IGNORE);
  check(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
}

static MPI_Request pending;
static int completes(MPI_Comm comm, int key, void* value, void* state) {
  (void)comm, (void)key, (void)value, (void)state;
  return MPI_Wait(&pending, MPI_STATUS_IGNORE);
}

// A delete callback of the communicator completes an operation that was started before.
static void completed_in_a_callback(MPI_Comm comm) {
  static double sum[2];
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, completes, &key, NULL);
  MPI_Comm_set_attr(comm, key, NULL);
  MPI_Iallreduce(in, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &pending);
}

// With MPI_PROC_NULL nothing is sent or received, so the program may use all buffers.
static void with_nobody(void) {
  MPI_Request four[4];
  for (int i = 0; i < 2; ++i) {
    MPI_Irecv(out, COUNT, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &four[i]);
    MPI_Isend(out, COUNT, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &four[2 + i]);
  }
  for (int i = 0; i < COUNT; ++i) out[i] = i;
  MPI_Waitall(4, four, MPI_STATUSES_IGNORE);
#ifdef MPICH_VERSION  // other libraries refuse MPI_DATATYPE_NULL
  MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, MPI_COMM_WORLD, four);
  MPI_Wait(four, MPI_STATUS_IGNORE);
#endif
}

// The MPI library's own thread may receive the message while the program computes.
static void received_while_computing(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 4, MPI_COMM_WORLD, &both[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 4, MPI_COMM_WORLD, &both[1]);
  const clock_t began = clock();
  while (clock() - began < CLOCKS_PER_SEC / 20) continue;
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

// What lies between the blocks is the program's.
static void between_blocks(void) {
  const int counts[2] = {COUNT / 4, COUNT / 4}, begins[2] = {0, COUNT / 2};
  MPI_Request request;
  MPI_Ialltoallv(in, counts, begins, MPI_DOUBLE, out, counts, begins, MPI_DOUBLE, MPI_COMM_WORLD,
                 &request);
  for (int i = COUNT / 4; i < COUNT / 2; ++i) in[i] = out[i] = i;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// At the border of a grid the blocks of missing neighbours are the program's.
static void at_the_border(void) {
  const int length = 2, ends = 0, block = COUNT / 2, mine = rank == 0 ? 0 : 1;
  MPI_Request request;
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &length, &ends, 0, &line);
  MPI_Ineighbor_alltoall(in, block, MPI_DOUBLE, out, block, MPI_DOUBLE, line, &request);
  for (int i = 0; i < block; ++i) in[mine * block + i] = out[mine * block + i] = i;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&line);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  in = pages(), out = pages();
  wait_is_looked_up();
  wait_is_left();
  wait_fails();
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  completed_in_a_callback(comm);
  MPI_Comm_free(&comm);
  with_nobody();
  received_while_computing();
  between_blocks();
  at_the_border();
  completed_in_a_callback(MPI_COMM_SELF);
  MPI_Finalize();
  return 0;
}
