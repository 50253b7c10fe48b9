// Usage: inline_calls ROUNDS [statuses]. It starts short bcasts and makes all kinds of calls
// between their start and end. It completes them in all ways. It prints "right" if all data have
// arrived, and otherwise what was wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLongest = 512, kMost = 6 };

static int rank, ranks, root, failures, calls;
static double data[kMost][kLongest];
static const int kLengths[] = {1, 6, 7, kLongest};

static void failed(const char* what) {
  printf("rank %d, call %d: %s\n", rank, calls, what);
  ++failures;
}

static double value(int call, int i) {
  return 1000.0 * call + i;
}

static int length_of(int call) {
  return kLengths[call / 3 % 4];
}

// Starts a bcast into data[place].
static MPI_Request begin(int place, MPI_Comm comm) {
  MPI_Request request;
  const int length = length_of(calls);
  for (int i = 0; i < length; ++i) data[place][i] = rank == root ? value(calls, i) : -1;
  MPI_Ibcast(data[place], length, MPI_DOUBLE, root, comm, &request);
  ++calls;
  return request;
}

// Checks data[place] after the bcast that was started as the n-th last one.
static void check(int place, int n) {
  const int call = calls - n;
  for (int i = 0; i < length_of(call); ++i)
    if (data[place][i] != value(call, i)) return failed("other data");
}

// Puts values into the status that MPI_Wait and similar calls must overwrite when a collective is
// complete.
static void spoil(MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_INT, 7);
  MPI_Status_set_cancelled(status, 1);
}

// Whether Weft handles all calls; a library may leave the status of its own calls unchanged.
static int are_wefts;

static void check_status(const MPI_Status* status) {
  if (!are_wefts) return;
  int elements = -1, cancelled = 1;
  MPI_Get_elements(status, MPI_INT, &elements);
  MPI_Test_cancelled(status, &cancelled);
  if (elements != 0 || cancelled) failed("another status");
}

static void check_null(MPI_Request request) {
  if (request != MPI_REQUEST_NULL) failed("the request is not null");
}

static void by_wait(MPI_Comm comm) {
  MPI_Status status;
  MPI_Request request = begin(0, comm);
  spoil(&status);
  MPI_Wait(&request, &status);
  check_status(&status);
  check_null(request);
  check(0, 1);
}

static void by_test(MPI_Comm comm) {
  MPI_Status status;
  MPI_Request request = begin(0, comm);
  spoil(&status);
  for (int flag = 0; !flag;) MPI_Test(&request, &flag, &status);
  check_status(&status);
  check_null(request);
  check(0, 1);
}

static void by_waitall(MPI_Comm comm) {
  MPI_Status status;
  MPI_Request request = begin(0, comm);
  spoil(&status);
  MPI_Waitall(1, &request, &status);
  check_status(&status);
  check_null(request);
  check(0, 1);
}

// Other bcasts begin and end before the first one is found complete.
static void by_test_among_others(MPI_Comm comm) {
  MPI_Request request = begin(1, comm);
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  by_test(comm);
  if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
  check_null(request);
  check(1, 2);
}

static void by_pmpi(MPI_Comm comm) {
  MPI_Request request = begin(0, comm);
  PMPI_Wait(&request, MPI_STATUS_IGNORE);
  check_null(request);
  check(0, 1);
}

static void several_by_waitall(MPI_Comm comm) {
  MPI_Request requests[kMost + 1];
  for (int i = 0; i < kMost; ++i) requests[i] = begin(i, comm);
  requests[kMost] = MPI_REQUEST_NULL;
  MPI_Waitall(kMost + 1, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMost; ++i) check_null(requests[i]), check(i, kMost - i);
}

static void several_from_the_last_on(MPI_Comm comm) {
  MPI_Request requests[kMost];
  for (int i = 0; i < kMost; ++i) requests[i] = begin(i, comm);
  for (int i = kMost - 1; i >= 0; --i) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    check(i, kMost - i);
  }
}

static void one_of_an_array(MPI_Comm comm) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, begin(1, comm)};
  int index = -1;
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  if (index != 1) failed("another index");
  check(1, 1);
  requests[0] = begin(0, comm);
  int completed = 0, indices[2];
  MPI_Waitsome(2, requests, &completed, indices, MPI_STATUSES_IGNORE);
  if (completed != 1 || indices[0] != 0) failed("others were completed");
  check(0, 1);
  requests[0] = begin(0, comm);
  for (int flag = 0; !flag;) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  check_null(requests[0]);
  check(0, 1);
}

static void after_a_look(MPI_Comm comm) {
  MPI_Request request = begin(0, comm);
  for (int flag = 0; !flag;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  check(0, 1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check_null(request);
}

static void across_other_calls(MPI_Comm comm) {
  MPI_Request request = begin(0, comm);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum != ranks) failed("another sum");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(0, 1);
  request = begin(0, comm);
  const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
  int token = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, to, 5, &token, 1, MPI_INT, from, 5, comm, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  if (token != from) failed("another message");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(0, 1);
}

// Starts a bcast and completes it after many others.
static void across_many(MPI_Comm comm) {
  MPI_Request request = begin(0, comm);
  for (int i = 0; i < 9; ++i) {
    MPI_Request other = begin(1, comm);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    check(1, 1);
  }
  for (int i = 0; i < 9; ++i) MPI_Bcast(&data[2][0], 1, MPI_DOUBLE, root, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(0, 10);
}

static void on_a_communicator_that_goes(MPI_Comm comm) {
  MPI_Comm copy;
  MPI_Comm_dup(comm, &copy);
  MPI_Request request = begin(0, copy);
  MPI_Comm_free(&copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(0, 1);
  request = begin(0, comm);
  MPI_Comm_dup(comm, &copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(0, 1);
  MPI_Comm_free(&copy);
}

static void of_a_type_that_goes(MPI_Comm comm) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  double two[2] = {rank == root ? 1 : 0, rank == root ? 2 : 0};
  MPI_Request request;
  MPI_Ibcast(two, 1, pair, root, comm, &request);
  MPI_Type_free(&pair);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (two[0] != 1 || two[1] != 2) failed("other data of a type");
}

static void sums(MPI_Comm comm) {
  double own = rank + calls, sum = 0, expected = 0;
  MPI_Request request;
  MPI_Iallreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm, &request);
  for (int flag = 0; !flag && calls % 2;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < ranks; ++i) expected += i + calls;
  if (sum != expected) failed("another sum");
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  void (*const kinds[])(MPI_Comm) = {by_wait,
                                     by_test,
                                     by_waitall,
                                     by_test_among_others,
                                     by_pmpi,
                                     several_by_waitall,
                                     several_from_the_last_on,
                                     one_of_an_array,
                                     after_a_look,
                                     across_other_calls,
                                     across_many,
                                     on_a_communicator_that_goes,
                                     of_a_type_that_goes,
                                     sums};
  const int count = (int)(sizeof kinds / sizeof *kinds);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  are_wefts = argc > 2;
  for (int round = 0; round < atoi(argv[1]) * count; ++round) {
    root = round / 5 % ranks;
    // Waits for many bcasts in between: after an operation was handed over to the progress thread,
    // the next few are not completed inline.
    for (int i = 0; i < round % 23; ++i) by_wait(MPI_COMM_WORLD);
    kinds[round % count](MPI_COMM_WORLD);
  }
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("right\n");
  MPI_Request last = begin(0, MPI_COMM_WORLD);
  MPI_Wait(&last, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return all != 0;
}
