// Row 44 of tests/faults/README.md: generalised requests of the program whose callbacks call MPI,
// completed in every possible way. All ranks complete them in the same order, so that the
// collectives in the callbacks match.
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

// Makes collectives of all kinds, and messages.
void communicate() {
  int one = 1, right_away = 0, persistent = 0, blocking = 0, from_left = -1;
  const int size = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  MPI_Request started, initialised;
  MPI_Iallreduce(&one, &right_away, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &started);
  MPI_Allreduce_init(&one, &persistent, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &initialised);
  MPI_Start(&initialised);
  MPI_Allreduce(&one, &blocking, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Wait(&initialised, MPI_STATUS_IGNORE);
  MPI_Request_free(&initialised);
  MPI_Wait(&started, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &from_left, 1, MPI_INT,
               (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect(right_away == size && persistent == size && blocking == size, "a sum in a callback");
  expect(from_left == (rank + size - 1) % size, "a message in a callback");
}

// What the callbacks of a request have noted, and what they return.
struct Seen {
  int queries = 0, frees = 0, cancels = 0;
  bool communicates = true;
  int query_code = MPI_SUCCESS, free_code = MPI_SUCCESS, cancel_code = MPI_SUCCESS;
};

int query(void* state, MPI_Status* status) {
  auto* seen = static_cast<Seen*>(state);
  expect(seen->frees == 0, "queried before it is freed");
  // MPICH's calls for arrays call the query function more than once.
  const bool is_first = seen->queries++ == 0;
  MPI_Status_set_elements(status, MPI_INT, 3);
  MPI_Status_set_cancelled(status, seen->cancels > 0);
  status->MPI_SOURCE = 17;
  status->MPI_TAG = 18;
  if (seen->communicates && is_first) communicate();
  return seen->query_code;
}

int free(void* state) {
  auto* seen = static_cast<Seen*>(state);
  ++seen->frees;
  if (seen->communicates) communicate();
  return seen->free_code;
}

int cancel(void* state, int complete) {
  auto* seen = static_cast<Seen*>(state);
  expect(!complete, "cancelled before it is complete");
  ++seen->cancels;
  if (seen->communicates) communicate();
  return seen->cancel_code;
}

MPI_Request start(Seen* seen, bool complete = true) {
  MPI_Request request;
  MPI_Grequest_start(query, free, cancel, seen, &request);
  if (complete) MPI_Grequest_complete(request);
  return request;
}

void expect_status(const MPI_Status& status, bool is_cancelled = false) {
  int count = -1, cancelled = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Test_cancelled(&status, &cancelled);
  expect(status.MPI_SOURCE == 17 && status.MPI_TAG == 18 && count == 3, "what query_fn has set");
  expect((cancelled != 0) == is_cancelled, "whether it was cancelled");
}

// The functions below complete one generalised request, or several among other requests.
int by_wait(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  return MPI_Wait(&requests[0], &statuses[0]);
}
int by_test(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  int flag = 0, code = MPI_SUCCESS;
  while (!flag && code == MPI_SUCCESS) code = MPI_Test(&requests[0], &flag, &statuses[0]);
  return code;
}
int by_wait_any(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  int index = -1;
  const int code = MPI_Waitany(1, requests.data(), &index, statuses.data());
  expect(index == 0, "the one that is complete");
  return code;
}
int by_test_any(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  int flag = 0, index = -1, code = MPI_SUCCESS;
  while (!flag && code == MPI_SUCCESS)
    code = MPI_Testany(1, requests.data(), &index, &flag, statuses.data());
  return code;
}
int by_wait_all(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  return MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
}
int by_test_all(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  int flag = 0, code = MPI_SUCCESS;
  while (!flag && code == MPI_SUCCESS)
    code = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, statuses.data());
  return code;
}

using Some = int (*)(int, MPI_Request[], int*, int[], MPI_Status[]);
int by_some(Some some, std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  const int count = static_cast<int>(requests.size());
  std::vector<int> indices(requests.size());
  std::vector<MPI_Status> told(requests.size());
  int completed = 0, code = MPI_SUCCESS;
  for (int all = 0; all < count && code == MPI_SUCCESS; all += completed) {
    completed = 0;
    code = some(count, requests.data(), &completed, indices.data(), told.data());
    if (completed == MPI_UNDEFINED) break;
    for (int k = 0; k < completed; ++k) statuses[indices[k]] = told[k];
  }
  return code;
}
int by_wait_some(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  return by_some(MPI_Waitsome, requests, statuses);
}
int by_test_some(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  return by_some(MPI_Testsome, requests, statuses);
}

using Complete = int (*)(std::vector<MPI_Request>&, std::vector<MPI_Status>&);
constexpr std::array<Complete, 8> kAlone = {by_wait,     by_test,     by_wait_any,  by_test_any,
                                            by_wait_all, by_test_all, by_wait_some, by_test_some};
constexpr std::array<Complete, 4> kAmongOthers = {by_wait_all, by_test_all, by_wait_some,
                                                  by_test_some};

void complete_one(Complete complete) {
  Seen seen;
  std::vector<MPI_Request> requests = {start(&seen)};
  std::vector<MPI_Status> statuses(1);
  expect(complete(requests, statuses) == MPI_SUCCESS, "completed");
  expect(requests[0] == MPI_REQUEST_NULL && seen.queries >= 1 && seen.frees == 1, "freed once");
  expect_status(statuses[0]);
}

// Completes two generalised requests, a message in each direction and one collective in one call.
void complete_among_others(Complete complete) {
  const int size = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  Seen first, second;
  Sum sum(10, MPI_COMM_WORLD);
  int received = -1;
  std::vector<MPI_Request> requests(5);
  std::vector<MPI_Status> statuses(5);
  MPI_Irecv(&received, 1, MPI_INT, (rank + 1) % size, 2, MPI_COMM_WORLD, &requests[0]);
  requests[1] = start(&first);
  sum.start(&requests[2]);
  requests[3] = start(&second);
  MPI_Isend(&rank, 1, MPI_INT, (rank + size - 1) % size, 2, MPI_COMM_WORLD, &requests[4]);
  expect(complete(requests, statuses) == MPI_SUCCESS, "completed among others");
  expect(first.queries >= 1 && first.frees == 1 && second.queries >= 1 && second.frees == 1,
         "freed once, among others");
  expect(received == (rank + 1) % size && sum.right(), "the others");
  expect_status(statuses[1]);
  expect_status(statuses[3]);
}

// When the callbacks are called, collectives are incomplete on some ranks and complete on others. A
// persistent collective is inactive.
void complete_beside_collectives() {
  Sum kept(10, MPI_COMM_WORLD), sum(1000, MPI_COMM_WORLD);
  MPI_Request persistent;
  kept.initialise(&persistent);
  for (int i = 0; i < 20; ++i) {
    Seen seen;
    MPI_Request request = start(&seen), collective;
    if (rank_of(MPI_COMM_WORLD) == i % size_of(MPI_COMM_WORLD)) rest(500);
    sum.reset();
    sum.start(&collective);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&collective, MPI_STATUS_IGNORE);
    expect(seen.queries == 1 && seen.frees == 1 && sum.right(), "beside a collective");
  }
  MPI_Request_free(&persistent);
}

void look_free_and_cancel() {
  Seen looked_at, freed, freed_early, cancelled;
  MPI_Status status;
  int flag = 0;
  MPI_Request request = start(&looked_at, false);
  MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  expect(!flag && looked_at.queries == 0, "not complete yet");
  MPI_Grequest_complete(request);
  MPI_Request_get_status(request, &flag, &status);
  expect(flag && looked_at.queries == 1 && looked_at.frees == 0, "asked for its status");
  expect_status(status);
  MPI_Wait(&request, &status);
  expect(looked_at.queries == 2 && looked_at.frees == 1, "then waited for");

  request = start(&freed);
  MPI_Request_free(&request);
  expect(request == MPI_REQUEST_NULL && freed.frees == 1 && freed.queries == 0, "freed");

  request = start(&freed_early, false);
  MPI_Request kept = request;
  MPI_Request_free(&request);
  expect(request == MPI_REQUEST_NULL && freed_early.frees == 0, "freed before its end");
  MPI_Grequest_complete(kept);
  expect(freed_early.frees == 1, "freed at its end");

  request = start(&cancelled, false);
  MPI_Cancel(&request);
  expect(cancelled.cancels == 1 && cancelled.queries == 0, "cancelled");
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  expect_status(status, true);
}

// Prints what a call returns if callbacks fail, which is the library's choice; the test compares
// it.
void say(const char* what, int code, int status_code) {
  if (rank_of(MPI_COMM_WORLD) == 0)
    tell_all("%s: class %d, in the status %d", what, class_of(code), class_of(status_code));
}
void report_to_handler(MPI_Comm*, int* code, ...) {
  say("handler", *code, MPI_SUCCESS);
}

void fail_in(Seen seen, const char* where) {
  seen.communicates = false;
  for (std::size_t i = 0; i < kAlone.size(); ++i) {
    Seen one = seen;
    std::vector<MPI_Request> requests = {start(&one)};
    std::vector<MPI_Status> statuses(1);
    statuses[0].MPI_ERROR = MPI_SUCCESS;
    const int code = kAlone[i](requests, statuses);
    say(where, code, statuses[0].MPI_ERROR);
    expect(one.queries >= 1 && one.frees == 1 && requests[0] == MPI_REQUEST_NULL, "all the same");
  }
  Seen one = seen, other = seen, freed = seen, cancelled = seen;
  std::vector<MPI_Request> requests = {start(&one), start(&other)};
  say(where, MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
  MPI_Request request = start(&freed);
  int flag = 0;
  say(where, MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  say(where, MPI_Request_free(&request), MPI_SUCCESS);
  request = start(&cancelled, false);
  say(where, MPI_Cancel(&request), MPI_SUCCESS);
  MPI_Grequest_complete(request);
  cancelled.query_code = cancelled.free_code = MPI_SUCCESS;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void fail_in_callbacks() {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(report_to_handler, &handler);
  for (const MPI_Errhandler one : {handler, MPI_ERRORS_RETURN}) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, one);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, one);
    Seen seen;
    seen.query_code = MPI_ERR_TRUNCATE;
    fail_in(seen, "query_fn");
    seen.free_code = MPI_ERR_RANK;
    fail_in(seen, "both");
    seen.query_code = MPI_SUCCESS;
    fail_in(seen, "free_fn");
    seen.free_code = MPI_SUCCESS;
    seen.cancel_code = MPI_ERR_RANK;
    fail_in(seen, "cancel_fn");
  }
  MPI_Errhandler_free(&handler);
}

// The environment variable FAULTS_LEVEL chooses the requested thread level: single or multiple.
void callbacks_that_call_mpi() {
  const char* level = std::getenv("FAULTS_LEVEL");
  const bool multiple = level && std::strcmp(level, "multiple") == 0;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  for (const Complete complete : kAlone) complete_one(complete);
  for (const Complete complete : kAmongOthers) complete_among_others(complete);
  complete_beside_collectives();
  look_free_and_cancel();
  fail_in_callbacks();
  MPI_Finalize();
}

}  // namespace

const std::vector<Case>& callback_cases() {
  static const std::vector<Case> cases = {
      {"callbacks-that-call-mpi", callbacks_that_call_mpi, true},
  };
  return cases;
}

}  // namespace faults
