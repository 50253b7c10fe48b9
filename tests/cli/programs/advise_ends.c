/* Programs that end in different ways. Usage: advise_ends
 * none|exit|kill|crash|nonblocking|blocks|communicators|groups|fork. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void reduce(double* in, double* out) {
  MPI_Allreduce(in, out, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void nonblocking(double* in, double* out) {
  MPI_Request request;
  MPI_Iallreduce(in, out, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  for (int flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void blocks(double* in, double* out) {
  int ranks, counts[64];
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int each = 1000 / ranks;
  for (int i = 0; i < ranks && i < 64; ++i) counts[i] = each;
  MPI_Gather(in, each, MPI_DOUBLE, out, each, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Scatter(in, each, MPI_DOUBLE, out, each, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(in, out, each, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Makes more than 64 communicators of ranks 0 and 1, then some of ranks 0 and 2. */
static void groups(double* in, double* out) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 80; ++i) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, i < 70 ? rank == 2 : rank == 1, rank, &comm);
    MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Comm_free(&comm);
  }
}

static void communicators(double* in, double* out) {
  for (int i = 0; i < 500; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Comm_free(&comm);
  }
}

static void types(int count) {
  MPI_Datatype type;
  for (int i = 0; i < count; ++i) MPI_Type_contiguous(2, MPI_DOUBLE, &type), MPI_Type_free(&type);
}

static void forks(double* in, double* out) {
  types(1);
  const pid_t child = fork();
  if (child == 0) types(100), _exit(0);
  waitpid(child, NULL, 0);
  reduce(in, out);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *in = calloc(1000, sizeof *in), *out = calloc(1000, sizeof *out);
  const char* how = argc > 1 ? argv[1] : "none";
  for (int i = 0; i < 20 && strcmp(how, "none") != 0; ++i)
    (strcmp(how, "nonblocking") == 0     ? nonblocking
     : strcmp(how, "blocks") == 0        ? blocks
     : strcmp(how, "groups") == 0        ? groups
     : strcmp(how, "fork") == 0          ? forks
     : strcmp(how, "communicators") == 0 ? communicators
                                         : reduce)(in, out);
  if (strcmp(how, "kill") == 0 && rank == 1) raise(SIGKILL);
  if (strcmp(how, "crash") == 0 && rank == 1) *(volatile int*)NULL = 1;
  MPI_Finalize();
  return strcmp(how, "exit") == 0 ? 3 : 0;
}
