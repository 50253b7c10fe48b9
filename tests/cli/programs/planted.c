// Mistakes with operations in flight, one in each function. A trailing comment at each wrong line
// names the rule that it breaks. With the argument "right" the program makes no mistake.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COUNT = 8192, PAGE = 4096 };
static int rank, peer, wrong;
static double *in, *out, *third;
static volatile size_t bytes = COUNT * sizeof(double);

static double* pages(void) {
  void* found = NULL;
  if (posix_memalign(&found, PAGE, COUNT * sizeof(double)) != 0) abort();
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

// The buffer does not begin at the border of a page.
static void receive_written(void) {
  MPI_Request both[2];
  MPI_Irecv(out + 1, COUNT - 1, MPI_DOUBLE, peer, 9, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in, COUNT - 1, MPI_DOUBLE, peer, 9, MPI_COMM_WORLD, &both[0]);
  if (wrong) out[COUNT / 2] = 8;  // receive-touched MPI_Irecv
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void send_copied(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 10, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 10, MPI_COMM_WORLD, &both[0]);
  if (wrong) memcpy(in, third, bytes);  // send-written MPI_Isend
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

// The program uses other data on the buffer's first page, which is allowed.
static void beside_the_buffer(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT - 1, MPI_DOUBLE, peer, 19, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in + 1, COUNT - 1, MPI_DOUBLE, peer, 19, MPI_COMM_WORLD, &both[0]);
  for (int i = 0; i < 100; ++i) ((volatile double*)in)[0] = i;
  if (wrong) in[COUNT / 2] = 20;  // send-written MPI_Isend
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void receive_cleared(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 11, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 11, MPI_COMM_WORLD, &both[0]);
  if (wrong) memset(out, 0, bytes);  // receive-touched MPI_Irecv
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void synchronous(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 12, MPI_COMM_WORLD, &both[1]);
  MPI_Issend(in, COUNT, MPI_DOUBLE, peer, 12, MPI_COMM_WORLD, &both[0]);
  if (wrong) in[1] = 9;  // send-written MPI_Issend
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void ready(void) {
  MPI_Request both[2];
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 13, MPI_COMM_WORLD, &both[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Irsend(in, COUNT, MPI_DOUBLE, peer, 13, MPI_COMM_WORLD, &both[0]);
  if (wrong) in[2] = 10;  // send-written MPI_Irsend
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

// The mistake is made with the first of two operations.
static void tested(void) {
  MPI_Request both[2];
  int done = 0;
  MPI_Irecv(out, COUNT, MPI_DOUBLE, peer, 14, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 14, MPI_COMM_WORLD, &both[1]);
  if (wrong) *(volatile double*)third = out[COUNT - 1];  // receive-touched MPI_Irecv
  while (!done) MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
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

static void reduced(void) {
  MPI_Request request;
  MPI_Ireduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD, &request);
  if (wrong) in[3] = 11;  // send-written MPI_Ireduce
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void gathered(void) {
  MPI_Request request;
  MPI_Igather(in, COUNT / 2, MPI_DOUBLE, out, COUNT / 2, MPI_DOUBLE, 1, MPI_COMM_WORLD, &request);
  if (wrong) in[4] = 12;  // send-written MPI_Igather
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void scattered(void) {
  MPI_Request request;
  MPI_Iscatter(in, COUNT / 2, MPI_DOUBLE, out, COUNT / 2, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
  if (wrong && rank == 0) in[5] = 13;  // send-written MPI_Iscatter
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void scanned(void) {
  MPI_Request request;
  MPI_Iscan(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  if (wrong) in[6] = 14;  // send-written MPI_Iscan
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void reduced_blocks(void) {
  MPI_Request request;
  MPI_Ireduce_scatter_block(in, out, COUNT / 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  if (wrong) out[7] = 15;  // receive-touched MPI_Ireduce_scatter_block
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const int halves[2] = {COUNT / 2, COUNT / 2}, begins[2] = {0, COUNT / 2};

static void all_to_all_by_count(void) {
  MPI_Request request;
  MPI_Ialltoallv(in, halves, begins, MPI_DOUBLE, out, halves, begins, MPI_DOUBLE, MPI_COMM_WORLD,
                 &request);
  if (wrong) out[8] = 16;  // receive-touched MPI_Ialltoallv
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void gathered_by_count(void) {
  MPI_Request request;
  MPI_Iallgatherv(in, COUNT / 2, MPI_DOUBLE, out, halves, begins, MPI_DOUBLE, MPI_COMM_WORLD,
                  &request);
  if (wrong) in[9] = 17;  // send-written MPI_Iallgatherv
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sent_by_count(void) {
  MPI_Request request;
  MPI_Ialltoallv(in, halves, begins, MPI_DOUBLE, out, halves, begins, MPI_DOUBLE, MPI_COMM_WORLD,
                 &request);
  if (wrong) in[12] = 20;  // send-written MPI_Ialltoallv
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sent_blocks(void) {
  MPI_Request request;
  MPI_Ireduce_scatter(in, out, halves, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  if (wrong) in[13] = 21;  // send-written MPI_Ireduce_scatter
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static MPI_Comm beside_the_peer(void) {
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &peer, MPI_UNWEIGHTED, 1, &peer, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &comm);
  return comm;
}

static void sent_to_neighbours(void) {
  const int all = COUNT, begin = 0;
  MPI_Request request;
  MPI_Comm comm = beside_the_peer();
  MPI_Ineighbor_alltoallv(in, &all, &begin, MPI_DOUBLE, out, &all, &begin, MPI_DOUBLE, comm,
                          &request);
  if (wrong) in[14] = 22;  // send-written MPI_Ineighbor_alltoallv
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

static void received_from_neighbours(void) {
  MPI_Request request;
  MPI_Comm comm = beside_the_peer();
  MPI_Ineighbor_allgather(in, COUNT, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, comm, &request);
  if (wrong) out[15] = 23;  // receive-touched MPI_Ineighbor_allgather
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
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

static void persistent_receive(void) {
  MPI_Request both[2];
  MPI_Recv_init(out, COUNT, MPI_DOUBLE, peer, 15, MPI_COMM_WORLD, &both[0]);
  MPI_Start(&both[0]);
  MPI_Isend(in, COUNT, MPI_DOUBLE, peer, 15, MPI_COMM_WORLD, &both[1]);
  if (wrong) out[COUNT / 2] = 18;  // receive-touched MPI_Start
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  MPI_Request_free(&both[0]);
}

static void persistent_collective(void) {
  MPI_Request request;
  MPI_Allreduce_init(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  if (wrong) in[10] = 19;  // send-written MPI_Start
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
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

static void sent_where_received(void) {
  MPI_Request two[2];
  const double* const sent = wrong ? out : in;
  MPI_Irecv(out, 16, MPI_DOUBLE, peer, 16, MPI_COMM_WORLD, &two[0]);
  MPI_Isend(sent, 16, MPI_DOUBLE, peer, 16, MPI_COMM_WORLD, &two[1]);  // overlap MPI_Isend
  MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
}

static void overlapping_results(void) {
  MPI_Request two[2];
  double* const second = wrong ? out : third;
  MPI_Iallreduce(in, out, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &two[0]);
  MPI_Iallreduce(in, second, 16, MPI_DOUBLE, MPI_MAX,  // overlap MPI_Iallreduce
                 MPI_COMM_WORLD, &two[1]);
  MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
}

static void buffer_gone(void) {
  MPI_Request both[2];
  double* const mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MPI_Irecv(out, 64, MPI_DOUBLE, peer, 17, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(mine, 64, MPI_DOUBLE, peer, 17, MPI_COMM_WORLD, &both[1]);  // buffer-gone MPI_Isend
  if (wrong) munmap(mine, PAGE);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  if (!wrong) munmap(mine, PAGE);
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

// Returns a new communicator. Each mistake that involves several ranks is made on a communicator of
// its own, since the library may refuse the call.
static MPI_Comm another(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

static void other_root(void) {
  MPI_Comm comm = another();
  const int root = wrong ? peer : 0;
  MPI_Gather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, root, comm);  // order MPI_Gather
}

static void other_call(void) {
  MPI_Comm comm = another();
  if (wrong && rank == 1)
    MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_SUM, 0, comm);  // order MPI_Reduce
  else
    MPI_Bcast(in, 1, MPI_DOUBLE, 0, comm);
}

static void other_root_planned(void) {
  MPI_Comm comm = another();
  MPI_Request request;
  MPI_Bcast_init(in, 1, MPI_DOUBLE, wrong ? rank : 0, comm,  // order MPI_Bcast_init
                 MPI_INFO_NULL, &request);
  MPI_Request_free(&request);
}

static void count_of_bcast(void) {
  MPI_Comm comm = another();
  MPI_Bcast(in, wrong ? 4 * (rank + 1) : 4, MPI_DOUBLE, 0, comm);  // counts MPI_Bcast
}

static void type_of_bcast(void) {
  MPI_Comm comm = another();
  const MPI_Datatype type = wrong && rank == 1 ? MPI_INT64_T : MPI_DOUBLE;
  MPI_Bcast(in, 4, type, 0, comm);  // counts MPI_Bcast
}

static void type_of_result(void) {
  MPI_Comm comm = another();
  MPI_Request request;
  const int narrow = wrong && rank == 1;
  MPI_Iallreduce(in, out, narrow ? 8 : 4, narrow ? MPI_FLOAT : MPI_DOUBLE,  // counts MPI_Iallreduce
                 MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void operators(void) {
  MPI_Comm comm = another();
  const MPI_Op operation = wrong && rank == 1 ? MPI_MAX : MPI_SUM;
  MPI_Allreduce(in, out, 4, MPI_DOUBLE, operation, comm);  // counts MPI_Allreduce
}

static void count_of_reduction(void) {
  MPI_Comm comm = another();
  MPI_Reduce(in, out, wrong ? 8 - 4 * rank : 4, MPI_DOUBLE, MPI_SUM, 0, comm);  // counts MPI_Reduce
}

// The mistake is the receive count: it must be that of one rank's block, not of all blocks.
static void count_of_blocks(void) {
  MPI_Comm comm = another();
  const int all = wrong ? 2 : 1;
  MPI_Gather(in, 1, MPI_DOUBLE, out, all, MPI_DOUBLE, 0, comm);  // counts MPI_Gather
}

static void count_of_own_block(void) {
  MPI_Comm comm = another();
  const int all = wrong ? 2 : 1;
  MPI_Allgather(in, 1, MPI_DOUBLE, out, all, MPI_DOUBLE, comm);  // counts MPI_Allgather
}

static const int ones[2] = {1, 1}, places[2] = {0, 8};
static const int more_of_0[2] = {2, 1}, more_of_1[2] = {1, 2};

static void counts_of_pairs(void) {
  MPI_Comm comm = another();
  const int* const expected = wrong && rank == 1 ? more_of_0 : ones;
  MPI_Alltoallv(in, ones, places, MPI_DOUBLE, out, expected, places,  // counts MPI_Alltoallv
                MPI_DOUBLE, comm);
}

static void counts_scattered(void) {
  MPI_Comm comm = another();
  const int expected = wrong && rank == 1 ? 2 : 1;
  MPI_Scatterv(in, ones, places, MPI_DOUBLE, out, expected,  // counts MPI_Scatterv
               MPI_DOUBLE, 0, comm);
}

static void counts_gathered(void) {
  MPI_Comm comm = another();
  MPI_Gatherv(in, 1, MPI_DOUBLE, out, wrong ? more_of_1 : ones, places,  // counts MPI_Gatherv
              MPI_DOUBLE, 0, comm);
}

static void communicator_freed(void) {
  MPI_Comm comm = another();
  MPI_Request both[2];
  MPI_Irecv(out, 1, MPI_DOUBLE, peer, 18, comm, &both[0]);  // communicator-freed MPI_Irecv
  MPI_Isend(in, 1, MPI_DOUBLE, peer, 18, comm, &both[1]);   // communicator-freed MPI_Isend
  if (wrong) MPI_Comm_free(&comm);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  if (!wrong) MPI_Comm_free(&comm);
}

static void never_completed(void) {
  static MPI_Request request;
  MPI_Irecv(third, 1, MPI_DOUBLE, peer, 99, MPI_COMM_WORLD, &request);  // never-completed MPI_Irecv
  if (wrong) return;
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void never_started_again(void) {
  static MPI_Request request;
  MPI_Recv_init(third + 1, 1, MPI_DOUBLE, peer, 98, MPI_COMM_WORLD, &request);
  MPI_Start(&request);  // never-completed MPI_Start
  if (wrong) return;
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

static void barrier_not_completed(void) {
  static MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);  // never-completed MPI_Ibarrier
  if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
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
  send_copied();
  beside_the_buffer();
  receive_cleared();
  synchronous();
  ready();
  tested();
  collective_sent();
  collective_result();
  broadcast();
  all_to_all();
  reduced();
  gathered();
  scattered();
  scanned();
  reduced_blocks();
  all_to_all_by_count();
  gathered_by_count();
  sent_by_count();
  sent_blocks();
  sent_to_neighbours();
  received_from_neighbours();
  persistent();
  persistent_receive();
  persistent_collective();
  overlapping();
  sent_where_received();
  overlapping_results();
  buffer_gone();
  small_on_the_stack();
  stack_gone();
  order();
  other_root();
  other_call();
  other_root_planned();
  count_of_bcast();
  type_of_bcast();
  type_of_result();
  operators();
  count_of_reduction();
  count_of_blocks();
  count_of_own_block();
  counts_of_pairs();
  counts_scattered();
  counts_gathered();
  communicator_freed();
  never_completed();
  never_started_again();
  barrier_not_completed();
  MPI_Finalize();
  return 0;
}
