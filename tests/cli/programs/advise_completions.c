/* Results of collectives that are started and completed, and are then left alone for a known
 * time. There is one function for each way to complete them. Usage: advise_completions CALLS
 * [thread]. On standard error it prints for each function the least and the greatest number of
 * microseconds between completion and first use, by its own clock. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise_busy.h"

enum { COUNT = 8192, LATER_MS = 5 };

typedef struct {
  double least, most;
} Range;

static MPI_Request request, plan, sending, messages[2], pair[2];
static double *in, *out, *other, *third, scalar;
static double calls, returned;

/* A macro, since the place of the call must be in the calling function. */
#define START(result, count) \
  MPI_Iallreduce(in, result, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request)
static void complete(void) {
  calls = now();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  returned = now();
}
static void note(double touches, double touched, Range* range) {
  if (touches - returned < range->least) range->least = touches - returned;
  if (touched - calls > range->most) range->most = touched - calls;
}
static void touch(const double* result, double ms, Range* range) {
  if (ms > 0) busy(ms);
  const double touches = now();
  sink += *result;
  note(touches, now(), range);
}

__attribute__((noinline)) static void waits(Range* range) {
  START(out, COUNT);
  complete();
  touch(out + 7, LATER_MS, range);
}
__attribute__((noinline)) static void at_once(Range* range) {
  START(out, COUNT);
  complete();
  touch(out + 7, 0, range);
}
__attribute__((noinline)) static void tests(Range* range) {
  START(out, COUNT);
  for (int flag = 0; !flag; returned = now()) {
    calls = now();
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  touch(out + 7, LATER_MS, range);
}
/* The first of the two results is touched first. */
__attribute__((noinline)) static void both(Range* range) {
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &pair[0]);
  MPI_Ibcast(other, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD, &pair[1]);
  calls = now();
  MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  returned = now();
  touch(out + 7, LATER_MS, range);
  sink += other[7];
}
/* The result is touched before the persistent collective is started again. */
__attribute__((noinline)) static void planned(Range* range) {
  MPI_Start(&plan);
  calls = now();
  MPI_Wait(&plan, MPI_STATUS_IGNORE);
  returned = now();
  touch(other + 7, LATER_MS, range);
}
__attribute__((noinline)) static void plan_it(void) {
  MPI_Allreduce_init(in, other, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
}
/* The result is first used by a persistent collective that sends it. Before that, another
 * persistent collective is started, which uses other buffers. */
__attribute__((noinline)) static void started(Range* range) {
  START(out, COUNT);
  complete();
  MPI_Start(&plan);
  MPI_Wait(&plan, MPI_STATUS_IGNORE);
  busy(LATER_MS);
  const double touches = now();
  MPI_Start(&sending);
  note(touches, now(), range);
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
}
__attribute__((noinline)) static void plan_sending(void) {
  MPI_Allreduce_init(out, third, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &sending);
}
__attribute__((noinline)) static void mailed(Range* range) {
  START(out, COUNT);
  complete();
  busy(LATER_MS);
  const double touches = now();
  MPI_Startall(2, messages);
  note(touches, now(), range);
  MPI_Waitall(2, messages, MPI_STATUSES_IGNORE);
}
__attribute__((noinline)) static void number(Range* range) {
  START(&scalar, 1);
  complete();
  touch(&scalar, LATER_MS, range);
}
/* After the collective and before its result is used, a message arrives between the blocks of
 * the result. */
enum { WIDE = 1 << 17, BLOCK = 1024 };
static double *wide, *message;
__attribute__((noinline)) static void gaps(Range* range) {
  int rank, counts[2] = {BLOCK, BLOCK}, begins[2] = {0, WIDE - BLOCK};
  MPI_Request received;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Irecv(wide + BLOCK, WIDE - 2 * BLOCK, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD, &received);
  MPI_Iallgatherv(in, BLOCK, MPI_DOUBLE, wide, counts, begins, MPI_DOUBLE, MPI_COMM_WORLD,
                  &request);
  complete();
  MPI_Send(message, WIDE - 2 * BLOCK, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD);
  MPI_Wait(&received, MPI_STATUS_IGNORE);
  touch(wide + WIDE - 1, LATER_MS, range);
  if (wide[WIDE / 2] != 3) puts("wrong");
}
__attribute__((noinline)) static void stack(Range* range) {
  double result[200];
  START(result, 200);
  complete();
  touch(result + 7, LATER_MS, range);
}
/* The requests are completed by a thread that lives as long as the program. */
static pthread_barrier_t turn;
static int ending;
static void* completes(void* unused) {
  for (pthread_barrier_wait(&turn); !ending; pthread_barrier_wait(&turn)) {
    complete();
    pthread_barrier_wait(&turn);
  }
  return unused;
}
__attribute__((noinline)) static void thread(Range* range) {
  START(out, COUNT);
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn);
  touch(out + 7, LATER_MS, range);
}

static const struct {
  const char* name;
  void (*run)(Range*);
} cases[] = {{"waits", waits},     {"at_once", at_once}, {"tests", tests},   {"both", both},
             {"planned", planned}, {"started", started}, {"mailed", mailed}, {"number", number},
             {"gaps", gaps},       {"stack", stack},     {"thread", thread}};
enum { CASES = sizeof cases / sizeof *cases };

/* Returns memory whose pages nothing else uses. */
static double* buffer(int count) {
  double* made = aligned_alloc(4096, count * sizeof *made);
  for (int i = 0; i < count; ++i) made[i] = i % 17;
  return made;
}

int main(int argc, char** argv) {
  int rank, provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  in = buffer(COUNT);
  out = buffer(COUNT);
  other = buffer(COUNT);
  third = buffer(COUNT);
  wide = buffer(WIDE);
  message = buffer(WIDE);
  for (int i = 0; i < WIDE; ++i) message[i] = 3;
  plan_it();
  plan_sending();
  MPI_Recv_init(third, COUNT, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD, &messages[0]);
  MPI_Send_init(out, COUNT, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD, &messages[1]);
  const int with_thread = argc > 2;
  pthread_t waiter;
  if (with_thread) {
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&waiter, NULL, completes, NULL);
  }
  double sum = 0;
  for (int which = 0; which < CASES; ++which) {
    if ((strcmp(cases[which].name, "thread") == 0) != with_thread) continue;
    Range range = {1e9, 0};
    for (int i = 0; i < atoi(argv[1]); ++i) {
      cases[which].run(&range);
      for (int k = 0; k < COUNT; ++k) sum += out[k];
    }
    double ends[2] = {-range.least, range.most};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
      fprintf(stderr, "%s %.3f %.3f\n", cases[which].name, -ends[0] * 1e3, ends[1] * 1e3);
  }
  if (with_thread) {
    ending = 1;
    pthread_barrier_wait(&turn);
    pthread_join(waiter, NULL);
  }
  MPI_Request_free(&plan);
  MPI_Request_free(&sending);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&messages[i]);
  if (rank == 0) printf("checksum %.3f %.3f\n", sum, scalar);
  MPI_Finalize();
  return 0;
}
