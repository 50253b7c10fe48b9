// Persistent requests in unusual states, and arrays that mix all kinds of requests: active and
// inactive, of a collective and of a message, null. An application's array does not tell which
// requests are Weft's and which are the MPI library's.
#include <array>
#include <cstdlib>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

constexpr int kCount = 300;
constexpr int kTag = 5;

void complete_once(MPI_Request* request, Sum* sum) {
  sum->reset();
  MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  expect(sum->right(), "result of a persistent allreduce");
}

// Row 6 of tests/faults/README.md: a persistent request is never freed. The request and its buffers
// outlive the case.
void never_freed() {
  static Sum sum(kCount, MPI_COMM_WORLD);
  static MPI_Request used, unused;
  sum.initialise(&used);
  sum.initialise(&unused);
  complete_once(&used, &sum);
  expect(used != MPI_REQUEST_NULL, "an inactive persistent request is not null");
}

// Row 7 of tests/faults/README.md: the communicator is freed while the request is active.
void communicator_freed_while_active() {
  OwnWorld comm;
  Sum sum(20000, comm);
  MPI_Request request;
  sum.initialise(&request);
  MPI_Start(&request);
  MPI_Comm_free(comm.address());
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right(), "result after the communicator was freed");
  MPI_Request_free(&request);
}

// Row 8 of tests/faults/README.md: the communicator is freed before the start. The MPI library
// decides what happens; the test compares it.
void communicator_freed_before_start() {
  OwnWorld comm;
  Sum sum(kCount, comm);
  MPI_Request request;
  sum.initialise(&request);
  complete_once(&request, &sum);
  MPI_Comm_free(comm.address());
  complete_once(&request, &sum);
  MPI_Request_free(&request);
  tell("started after the communicator was freed: right");
}

int handler_calls = 0;

void count_error(MPI_Comm*, int*, ...) {
  ++handler_calls;
}

// Row 9 of tests/faults/README.md: an active request is freed or cancelled. Only Weft's engines
// must check that.
void freed_or_cancelled_while_active() {
  OwnWorld comm;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  for (auto call : {MPI_Request_free, MPI_Cancel}) {
    Sum sum(kCount, comm);
    MPI_Request request;
    if (rank == 0) {  // the other ranks start later, so the collective cannot be complete
      sum.start(&request);
      handler_calls = 0;
      expect(class_of(call(&request)) == MPI_ERR_REQUEST, "refused as MPI_ERR_REQUEST");
      expect(handler_calls == 1, "the communicator's handler is called once");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "the collective goes on");
  }
  MPI_Errhandler_free(&handler);
}

// Row 10 of tests/faults/README.md: an inactive request is freed.
void freed_while_inactive() {
  OwnWorld comm;
  Sum sum(kCount, comm);
  for (int i = 0; i < 100; ++i) {
    MPI_Request request;
    sum.initialise(&request);
    if (i % 2) complete_once(&request, &sum);
    expect(MPI_Request_free(&request) == MPI_SUCCESS, "an inactive request can be freed");
    expect(request == MPI_REQUEST_NULL, "a freed request is null");
  }
}

// Row 11 of tests/faults/README.md: an active request is started. The result is an error or what
// the library does; the test compares it.
void started_while_active() {
  OwnWorld comm;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  Sum sum(kCount, comm);
  MPI_Request request;
  sum.initialise(&request);
  MPI_Start(&request);
  // Only rank 0 starts again: if that were permitted, its second collective would have no partners.
  const int code = rank_of(comm) == 0 ? MPI_Start(&request) : MPI_SUCCESS;
  tell("second start: %s", class_of(code) == MPI_ERR_REQUEST ? "refused" : "allowed");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right(), "the first start completes");
  MPI_Request_free(&request);
}

// Row 12 of tests/faults/README.md: several requests are started by one call.
void started_together() {
  OwnWorld comm;
  const int rank = rank_of(comm), size = size_of(comm);
  Sum sum(kCount, comm);
  int out = rank, in = -1, box = -1;
  std::array<MPI_Request, 4> requests;
  MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % size, kTag, comm, &requests[0]);
  sum.initialise(&requests[1]);
  MPI_Recv_init(&in, 1, MPI_INT, (rank + size - 1) % size, kTag, comm, &requests[2]);
  MPI_Bcast_init(&box, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[3]);
  for (int round = 0; round < 5; ++round) {
    sum.reset();
    in = -1;
    box = rank == 0 ? 40 + round : -1;
    MPI_Startall(4, requests.data());
    MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
    expect(sum.right(), "allreduce");
    expect(in == (rank + size - 1) % size, "message");
    expect(box == 40 + round, "bcast");
  }
  for (auto& request : requests) MPI_Request_free(&request);
}

// One request of each kind. Active ones: kSum, kReceive, kStarted, kSend.
enum Which { kNull, kSum, kIdleSend, kReceive, kIdleSum, kStarted, kSend, kWhich };

// Returns whether the MPI library can have persistent collectives in these arrays. MPICH's own
// MPI_Waitall never returns if one of its requests is an inactive persistent collective, and its
// MPI_Testall fails if one is active.
bool persistent_collectives() {
  return !std::getenv("FAULTS_NO_PERSISTENT_IN_ARRAYS");
}

bool was_active(int which) {
  return which == kSum || which == kReceive || which == kSend ||
         (which == kStarted && persistent_collectives());
}

class Mixture {
 public:
  explicit Mixture(MPI_Comm comm) : comm_(comm), sum_(kCount, comm), persistent_(kCount, comm) {
    const int rank = rank_of(comm), size = size_of(comm);
    left_ = (rank + size - 1) % size;
    right_ = (rank + 1) % size;
    requests[kNull] = MPI_REQUEST_NULL;
    sum_.start(&requests[kSum]);
    MPI_Send_init(&out_, 1, MPI_INT, right_, kTag + 1, comm_, &requests[kIdleSend]);
    MPI_Irecv(&in_, 1, MPI_INT, left_, kTag, comm_, &requests[kReceive]);
    requests[kIdleSum] = MPI_REQUEST_NULL;
    requests[kStarted] = MPI_REQUEST_NULL;
    if (persistent_collectives()) {
      persistent_.initialise(&requests[kIdleSum]);
      persistent_.initialise(&requests[kStarted]);
      MPI_Start(&requests[kStarted]);
    }
    out_ = rank;
    MPI_Isend(&out_, 1, MPI_INT, right_, kTag, comm_, &requests[kSend]);
  }

  void check() {
    expect(sum_.right(), "allreduce");
    expect(!persistent_collectives() || persistent_.right(), "persistent allreduce");
    expect(in_ == left_, "message");
    for (int which = 0; which < kWhich; ++which) {
      const bool persistent = which == kIdleSend || ((which == kIdleSum || which == kStarted) &&
                                                     persistent_collectives());
      expect((requests[which] == MPI_REQUEST_NULL) != persistent, "which requests are null now");
    }
    for (auto& request : requests)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }

  void check_status(int which, const MPI_Status& status) const {
    if (which == kReceive) {
      int count = 0;
      MPI_Get_count(&status, MPI_INT, &count);
      expect(status.MPI_SOURCE == left_ && status.MPI_TAG == kTag && count == 1,
             "status of the message");
    } else if (!was_active(which)) {
      int count = -1;
      MPI_Get_count(&status, MPI_INT, &count);
      expect(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && count == 0,
             "status of a null or inactive request is empty");
    }
  }

  std::array<MPI_Request, kWhich> requests;

 private:
  MPI_Comm comm_;
  Sum sum_, persistent_;
  int left_ = 0, right_ = 0, out_ = 0, in_ = -1;
};

using Statuses = std::array<MPI_Status, kWhich>;

// How often each index was reported complete. Each of the functions below completes all requests
// and returns this.
using Seen = std::array<int, kWhich>;

Seen by_each(Mixture& m, bool test) {
  Seen seen{};
  for (int which = kWhich - 1; which >= 0; --which) {
    MPI_Status status;
    for (int done = 0; !done; rest()) {
      if (test) MPI_Test(&m.requests[which], &done, &status);
      if (!test) done = MPI_Wait(&m.requests[which], &status) == MPI_SUCCESS;
    }
    m.check_status(which, status);
    seen[which] += was_active(which);
  }
  return seen;
}

Seen by_all(Mixture& m, bool test) {
  Statuses statuses;
  if (!test) MPI_Waitall(kWhich, m.requests.data(), statuses.data());
  for (int done = !test; !done; rest())
    MPI_Testall(kWhich, m.requests.data(), &done, statuses.data());
  Seen seen{};
  for (int which = 0; which < kWhich; ++which) {
    m.check_status(which, statuses[which]);
    seen[which] += was_active(which);
  }
  return seen;
}

Seen by_any(Mixture& m, bool test) {
  Seen seen{};
  for (;;) {
    int index = MPI_UNDEFINED, done = 1;
    MPI_Status status;
    if (test) MPI_Testany(kWhich, m.requests.data(), &index, &done, &status);
    if (!test) MPI_Waitany(kWhich, m.requests.data(), &index, &status);
    if (!done) rest();
    if (!done) continue;
    if (index == MPI_UNDEFINED) return seen;
    m.check_status(index, status);
    ++seen[index];
  }
}

Seen by_some(Mixture& m, bool test) {
  Seen seen{};
  for (;;) {
    int done = 0, indices[kWhich];
    Statuses statuses;
    if (test) MPI_Testsome(kWhich, m.requests.data(), &done, indices, statuses.data());
    if (!test) MPI_Waitsome(kWhich, m.requests.data(), &done, indices, statuses.data());
    if (done == MPI_UNDEFINED) return seen;
    expect(test || done > 0, "a wait for some completes at least one");
    if (done == 0) rest();
    for (int k = 0; k < done; ++k) {
      m.check_status(indices[k], statuses[k]);
      ++seen[indices[k]];
    }
  }
}

// Row 13 of tests/faults/README.md: every call that completes requests.
void every_completion() {
  for (auto way : {by_each, by_all, by_any, by_some}) {
    for (bool test : {false, true}) {
      OwnWorld comm;
      Mixture mixture(comm);
      const Seen seen = way(mixture, test);
      for (int which = 0; which < kWhich; ++which)
        expect(seen[which] == was_active(which), "each active request completes exactly once");
      mixture.check();
    }
  }
}

// Row 14 of tests/faults/README.md: MPI_Request_get_status.
void asked_for_status() {
  OwnWorld comm;
  Mixture mixture(comm);
  for (int which = 0; which < kWhich; ++which) {
    const MPI_Request before = mixture.requests[which];
    MPI_Status status;
    for (int done = 0; !done; rest()) {
      MPI_Request_get_status(mixture.requests[which], &done, &status);
      expect(done || was_active(which), "null and inactive requests are complete at once");
    }
    expect(mixture.requests[which] == before, "the request stays");
    mixture.check_status(which, status);
  }
  by_all(mixture, false);
  mixture.check();
}

}  // namespace

const std::vector<Case>& request_cases() {
  static const std::vector<Case> cases = {
      {"persistent-never-freed", never_freed},
      {"persistent-comm-freed-while-active", communicator_freed_while_active},
      {"persistent-comm-freed-before-start", communicator_freed_before_start},
      {"freed-or-cancelled-while-active", freed_or_cancelled_while_active},
      {"persistent-freed-while-inactive", freed_while_inactive},
      {"persistent-started-while-active", started_while_active},
      {"persistent-started-together", started_together},
      {"every-completion", every_completion},
      {"asked-for-status", asked_for_status},
  };
  return cases;
}

}  // namespace faults
