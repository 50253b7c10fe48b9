/* Usage: own_transfers FILE SECONDS plain|persistent. Messages of 2 MiB go in both directions,
 * once for each call that completes requests. Rank 0 makes no MPI call until rank 1 has
 * completed its part and says so in the memory that both ranks map from FILE. It prints
 * "helped"; or "alone" if rank 0's messages did not progress within SECONDS. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18 };

static volatile int* said;
static int rank;
static double *out, *in;

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* Waits until *word is `value`. Returns 0 if that takes more than `seconds`. */
static int becomes(volatile int* word, int value, double seconds) {
  const double since = now();
  while (*word != value)
    if (now() - since > seconds) return 0;
  return 1;
}

static void fill(int round) {
  for (int i = 0; i < COUNT; ++i) out[i] = rank + round + i, in[i] = -1;
}

static void check(int round) {
  for (int i = 0; i < COUNT; ++i)
    if (in[i] != 1 - rank + round + i) fail("what was received");
}

static const char* const calls[] = {"wait",    "waitall", "waitany",  "waitsome", "test",
                                    "testall", "testany", "testsome", NULL};

static void complete(const char* how, int count, MPI_Request* requests) {
  int flag = 0, index, done = 0, some, indices[2];
  if (strcmp(how, "wait") == 0)
    for (int i = 0; i < count; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  else if (strcmp(how, "waitany") == 0)
    for (int i = 0; i < count; ++i) MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
  else if (strcmp(how, "waitsome") == 0)
    for (; done < count; done += some)
      MPI_Waitsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
  else if (strcmp(how, "test") == 0)
    for (int i = 0; i < count; ++i)
      for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
  else if (strcmp(how, "testsome") == 0)
    for (; done < count; done += some)
      MPI_Testsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
  else if (strcmp(how, "testany") == 0)
    for (; done < count; done += flag)
      MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
  else if (strcmp(how, "testall") == 0)
    while (!flag) MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
  else
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  const double seconds = atof(argv[2]);
  const int persistent = strcmp(argv[3], "persistent") == 0;
  const int other = 1, file = open(argv[1], O_RDWR | O_CREAT, 0600);
  int helped = 1;
  MPI_Request requests[2];
  if (ftruncate(file, 4096) != 0) return 1;
  said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = malloc(COUNT * sizeof *out);
  in = malloc(COUNT * sizeof *in);
  if (persistent && rank == 0) {
    MPI_Recv_init(in, COUNT, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, COUNT, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &requests[1]);
  }
  for (int round = 1; calls[round - 1] && helped; ++round) {
    fill(round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      if (persistent) {
        MPI_Startall(2, requests);
      } else {
        MPI_Irecv(in, COUNT, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, COUNT, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &requests[1]);
      }
      said[0] = round;
      helped = becomes(&said[1], round, seconds) && helped;
      complete(calls[round - 1], 2, requests);
    } else {
      /* Rank 1 starts its messages after rank 0's last MPI call. */
      while (said[0] != round) continue;
      MPI_Sendrecv(out, COUNT, MPI_DOUBLE, 0, 0, in, COUNT, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      said[1] = round;
    }
    check(round);
    MPI_Bcast(&helped, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (persistent && rank == 0) {
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
  }
  if (rank == 0) printf("%s\n", helped ? "helped" : "alone");
  MPI_Finalize();
  free(out);
  free(in);
  return 0;
}
