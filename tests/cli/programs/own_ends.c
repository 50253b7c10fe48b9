/* Usage: own_ends [early]. It tests large messages of the program that end in unusual ways: they
 * are freed while in flight, cancelled, too long for their receiver, or persistent and left
 * inactive. It also tests one-sided accesses that are completed in each possible way; with an
 * argument also by MPI_Win_free, on which no program should rely. After each test, Weft's thread
 * must go to sleep and not wake up. Rank 0 prints "right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "own_thread.h"

enum { COUNT = 1 << 18, PATIENCE = 30 };

static int rank, handled;
static double *out, *in;

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void count_error(MPI_Comm* comm, int* code, ...) {
  int class;
  (void)comm;
  MPI_Error_class(*code, &class);
  if (class == MPI_ERR_TRUNCATE) ++handled;
}

static void thread_comes_to_rest(const char* after) {
  const time_t since = time(NULL);
  for (long seen = -2, now; (now = sleeps_of_thread()) != seen; seen = now) {
    if (time(NULL) - since > PATIENCE) fail(after);
    usleep(100000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void freed_under_way(void) {
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(out, COUNT, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    thread_comes_to_rest("no rest after MPI_Request_free");
  } else {
    MPI_Irecv(in, COUNT, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (in[COUNT - 1] != COUNT - 1) fail("a freed message is wrong");
    thread_comes_to_rest("no rest after MPI_Wait");
  }
}

static void cancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int flag;
  MPI_Irecv(in, COUNT, MPI_DOUBLE, 1 - rank, 77, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  if (!flag) fail("a cancelled message is not");
  thread_comes_to_rest("no rest after MPI_Cancel");
}

/* The error handler must be called once, in the program's own call, and not while Weft's thread
 * tests the request. Some libraries call the error handler of MPI_COMM_WORLD or MPI_COMM_SELF. */
static void too_long(void) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  if (rank == 0) {
    MPI_Irecv(in, COUNT / 2, MPI_DOUBLE, 1, 0, comm, &request);
    MPI_Barrier(comm);
    usleep(50000);
    if (handled) fail("the error was told before the wait");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (handled != 1) fail("an error is not told once");
  } else {
    MPI_Barrier(comm);
    MPI_Send(out, COUNT, MPI_DOUBLE, 0, 0, comm);
  }
  thread_comes_to_rest("no rest after an error");
  MPI_Errhandler_free(&handler);
}

static void inactive(void) {
  MPI_Request requests[2];
  int flag;
  MPI_Recv_init(in, COUNT, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(out, COUNT, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  if (!flag) fail("an inactive request is not complete");
  thread_comes_to_rest("no rest over inactive requests");
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static MPI_Win window;

/* Writes to the other rank's window. */
static void put(int count) {
  MPI_Put(out, count, MPI_DOUBLE, 1 - rank, 0, count, MPI_DOUBLE, window);
}

static void ended_by(const char* what) {
  thread_comes_to_rest(what);
  for (int i = 0; i < COUNT; ++i)
    if (in[i] != out[i]) fail(what);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  memset(in, 0, COUNT * sizeof *in);
  MPI_Win_unlock(rank, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void fenced(void) {
  MPI_Win_fence(0, window);
  put(COUNT);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  ended_by("MPI_Win_fence");
}

static void locked(void) {
  MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, window);
  put(COUNT);
  MPI_Win_flush_local(1 - rank, window);
  thread_comes_to_rest("MPI_Win_flush_local");
  put(COUNT);
  MPI_Win_flush(1 - rank, window);
  thread_comes_to_rest("MPI_Win_flush");
  put(COUNT);
  MPI_Win_unlock(1 - rank, window);
  ended_by("MPI_Win_unlock");
}

static void all_locked(void) {
  MPI_Win_lock_all(0, window);
  put(COUNT);
  MPI_Win_flush_local_all(window);
  thread_comes_to_rest("MPI_Win_flush_local_all");
  put(COUNT);
  MPI_Win_flush_all(window);
  thread_comes_to_rest("MPI_Win_flush_all");
  put(COUNT);
  MPI_Win_unlock_all(window);
  ended_by("MPI_Win_unlock_all");
}

static void posted(MPI_Group others, int tests) {
  int flag = 0;
  MPI_Win_post(others, 0, window);
  MPI_Win_start(others, 0, window);
  put(COUNT);
  MPI_Win_complete(window);
  while (tests && !flag) MPI_Win_test(window, &flag);
  if (!tests) MPI_Win_wait(window);
  ended_by(tests ? "MPI_Win_test" : "MPI_Win_wait");
}

/* Weft's thread must not wake up for windows of few bytes, nor for memory that ranks share. */
static void short_ones(MPI_Group others) {
  const long sleeps = sleeps_of_thread();
  double* base;
  MPI_Win small;
  MPI_Win_create(in, sizeof *in, sizeof *in, MPI_INFO_NULL, MPI_COMM_WORLD, &small);
  MPI_Win_fence(0, small);
  usleep(50000);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, small);
  MPI_Win_post(others, 0, small);
  usleep(50000);
  MPI_Win_start(others, 0, small);
  MPI_Win_complete(small);
  MPI_Win_wait(small);
  MPI_Win_free(&small);
  MPI_Win_allocate_shared(COUNT * sizeof *in, sizeof *in, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                          &small);
  MPI_Win_fence(0, small);
  usleep(50000);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, small);
  MPI_Win_free(&small);
  MPI_Win_lock_all(0, window);
  put(1);
  MPI_Put(out, COUNT, MPI_DOUBLE, MPI_PROC_NULL, 0, COUNT, MPI_DOUBLE, window);
  usleep(50000);
  MPI_Win_unlock_all(window);
  if (sleeps_of_thread() != sleeps) fail("the thread wakes up for short accesses");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void accesses(int frees_too_early) {
  const int other = 1 - rank;
  MPI_Group world, others;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &other, &others);
  memset(in, 0, COUNT * sizeof *in);
  MPI_Win_create(in, COUNT * sizeof *in, sizeof *in, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  fenced();
  locked();
  all_locked();
  posted(others, 0);
  posted(others, 1);
  short_ones(others);
  if (frees_too_early) {
    MPI_Win_fence(0, window);
    put(COUNT);
  }
  MPI_Win_free(&window);
  thread_comes_to_rest("MPI_Win_free");
  MPI_Group_free(&others);
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = malloc(COUNT * sizeof *out);
  in = malloc(COUNT * sizeof *in);
  for (int i = 0; i < COUNT; ++i) out[i] = i;
  freed_under_way();
  cancelled();
  too_long();
  inactive();
  accesses(argc > 1);
  if (rank == 0) printf("right\n");
  MPI_Finalize();
  free(out);
  free(in);
  return 0;
}
