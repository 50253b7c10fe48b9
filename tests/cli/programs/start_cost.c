// Usage: start_cost CALLS FORM DOUBLES [wait|waitall|test], with FORM one of nonblocking,
// persistent, waitall, root, reader, blocking, left and known.
// It counts what the start of one allreduce costs rank 0 until the start returns. Rank 1 starts
// later, so that no collective can be complete and every start on rank 0 executes the same
// instructions. root, reader: it counts what start and completion of a bcast cost the root, or a
// rank that reads from it, if the other rank has started before. blocking: it counts what a bcast
// costs the root, which waits for nobody. left: it counts what an allreduce of zeroes costs beside
// the library's call, for which fast_allreduce.c must stand in. known: it counts what the
// initialisation of an allreduce costs that has been initialised before.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void counted_start(double* data, int doubles, int root,
                                             MPI_Request* request) {
  MPI_Ibcast(data, doubles, MPI_DOUBLE, root, MPI_COMM_WORLD, request);
}

__attribute__((noinline)) void counted_end(MPI_Request* request, const char* how) {
  int done = 0;
  if (strcmp(how, "test") == 0)
    while (!done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
  else if (strcmp(how, "waitall") == 0)
    MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  else
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void bcasts(int calls, int root, double* data, int doubles, int rank, const char* how) {
  int token = 0;
  MPI_Request request;
  for (int i = 0; i < calls; ++i) {
    counted_start(data, doubles, root, &request);
    MPI_Sendrecv_replace(&token, 1, MPI_INT, 1 - rank, 1, 1 - rank, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    counted_end(&request, how);
  }
}

// Makes the calls of the forms without a request that is waited for. Returns 0 for other forms.
static int other_calls(const char* form, int calls, double* in, double* out, int doubles,
                       int rank) {
  int token = 0, sum = 0;
  MPI_Request request;
  if (strcmp(form, "blocking") == 0)
    for (int i = 0; i < calls; ++i) {
      MPI_Bcast(in, doubles, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      MPI_Sendrecv_replace(&token, 1, MPI_INT, 1 - rank, 1, 1 - rank, 1, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE);
    }
  else if (strcmp(form, "left") == 0)
    for (int i = 0; i < calls; ++i)
      MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(form, "known") == 0)
    for (int i = 0; i < calls; ++i) {
      MPI_Allreduce_init(in, out, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request);
      MPI_Request_free(&request);
    }
  else
    return 0;
  return 1;
}

int main(int argc, char** argv) {
  const int waitall = strcmp(argv[2], "waitall") == 0;  // waitall: completes persistent requests
  const int persistent = waitall || strcmp(argv[2], "persistent") == 0;
  const int calls = atoi(argv[1]), doubles = atoi(argv[3]);
  double* in = calloc(doubles, sizeof *in);
  double* out = calloc(doubles, sizeof *out);
  int rank, token = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (persistent)
    MPI_Allreduce_init(in, out, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
  const int is_bcast = argv[2][0] == 'r';
  const int is_over = is_bcast || other_calls(argv[2], calls, in, out, doubles, rank);
  if (is_bcast)
    bcasts(calls, strcmp(argv[2], "root") != 0, in, doubles, rank, argc > 4 ? argv[4] : "wait");
  for (int i = 0; i < calls && !is_over; ++i) {
    if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (persistent)
      MPI_Start(&request);
    else
      MPI_Iallreduce(in, out, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (waitall)
      MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    else
      MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (persistent) MPI_Request_free(&request);
  MPI_Finalize();
  free(in);
  free(out);
  return 0;
}
