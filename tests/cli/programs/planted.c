// Mistakes with operations in flight, one a function; each line that is wrong names its rule. With
// the argument "right" the program makes none of them.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 8192 };
static int rank, peer, wrong;
static double *in, *out, *third;

static double* pages(void) {
  void* found = NULL;
  if (posix_memalign(&found, 4096, COUNT * sizeof(double)) != 0) abort();
  memset(found, 0, COUNT * sizeof(double));
  return found;
}

static void send_written(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &both[0]);
  if (wrong) in[COUNT / 2] = 1;  // send-written MPI_Isend
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void receive_read(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 2, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 2, MPI_COMM_WORLD, &both[0]);
  if (wrong) *(volatile double*)third = out[COUNT / 2];  // receive-touched MPI_Irecv
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

// The buffer begins inside a page.
static void receive_written(void) {
  MPI_Request both[2];
  MPI_Irecv(out + 1, COUNT - 1, MPI_DOUBLE, peer, 9, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in, COUNT - 1, MPI_DOUBLE, peer, 9, MPI_COMM_WORLD, &both[0]);
  if (wrong) out[COUNT / 2] = 8;  // receive-touched MPI_Irecv
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void collective_sent(void) {
  MPI_Request request;
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  if (wrong) in[7] = 2;  // send-written MPI_Iallreduce
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collective_result(void) {
  MPI_Request request;
  MPI_Iallgather(in, COUNT / 2, MPI_DOUBLE, out, COUNT / 2, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  if (wrong) out[COUNT - 9] = 3;  // receive-touched MPI_Iallgather
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void broadcast(void) {
  MPI_Request request;
  MPI_Ibcast(in, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
  if (wrong && rank == 0) in[100] = 4;  // send-written MPI_Ibcast
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void all_to_all(void) {
  MPI_Request request;
  MPI_Ialltoall(in, COUNT / 2, MPI_DOUBLE, out, COUNT / 2, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  if (wrong) in[COUNT - 1] = 5;  // send-written MPI_Ialltoall
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void persistent(void) {
  MPI_Request both[2];
  MPI_Recv_init(out, COUNT, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD, &both[0]);
  MPI_Send_init(in, COUNT, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD, &both[1]);
  MPI_Startall(2, both);
  if (wrong) in[11] = 6;  // send-written MPI_Startall
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
}

static void overlapping(void) {
  MPI_Request three[4];
  double* const second = wrong ? out : third;
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 4, MPI_COMM_WORLD, &three[0]);
  MPI_Irecv(second, COUNT, MPI_DOUBLE, peer, 4, MPI_COMM_WORLD, &three[1]);  // overlap MPI_Irecv
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 4, MPI_COMM_WORLD, &three[2]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 4, MPI_COMM_WORLD, &three[3]);
  MPI_Waitall(4, three, MPI_STATUSES_IGNORE);
}

static void small_on_the_stack(void) {
  MPI_Request both[2];
  volatile double mine[4] = {0};
  MPI_Irecv(out, 4, MPI_DOUBLE, peer, 5, MPI_COMM_WORLD, &both[1]);
  double* const sent = (double*)mine;
  MPI_Isend(sent, 4, MPI_DOUBLE, peer, 5, MPI_COMM_WORLD, &both[0]);  // send-written MPI_Isend
  if (wrong) mine[1] = 7;
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void from_a_function(MPI_Request* request) {
  volatile double mine[512];
  mine[0] = mine[511] = 1;
  double* const sent = (double*)mine;
  MPI_Isend(sent, 512, MPI_DOUBLE, peer, 6, MPI_COMM_WORLD, request);  // stack-gone MPI_Isend
  if (!wrong) MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void stack_gone(void) {
  MPI_Request both[2];
  MPI_Irecv(out, 512, MPI_DOUBLE, peer, 6, MPI_COMM_WORLD, &both[1]);
  from_a_function(&both[0]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void order(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int first = wrong && rank == 1;
  for (int i = 0; i < 2; ++i) {
    if (i == first)
      MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_SELF);
    else
      MPI_Barrier(MPI_COMM_SELF);
  }
  if (first)
    MPI_Bcast(in, 1, MPI_DOUBLE, 1, comm);  // order MPI_Bcast
  else
    MPI_Bcast(in, 1, MPI_DOUBLE, wrong ? 0 : 1, comm);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}

static void never_completed(void) {
  static MPI_Request request;
  MPI_Irecv(third, 1, MPI_DOUBLE, peer, 99, MPI_COMM_WORLD, &request);  // never-completed MPI_Irecv
  if (wrong) return;
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  wrong = argc < 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  in = pages(), out = pages(), third = pages();
  send_written();
  receive_read();
  receive_written();
  collective_sent();
  collective_result();
  broadcast();
  all_to_all();
  persistent();
  overlapping();
  small_on_the_stack();
  stack_gone();
  order();
  never_completed();
  MPI_Finalize();
  return 0;
}
