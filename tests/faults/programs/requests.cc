// Requests: persistent ones at the edges of their lives, and arrays that mix all that a request can
// be: active and inactive, of a collective and of a message, null.
// Why: the application's arrays do not say who serves which request.
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

// Row 6. The request outlives the case; its buffers do, too.
void never_freed() {
  static Sum sum(kCount, MPI_COMM_WORLD);
  static MPI_Request used, unused;
  sum.initialise(&used);
  sum.initialise(&unused);
  complete_once(&used, &sum);
  expect(used != MPI_REQUEST_NULL, "an inactive persistent request is not null");
}

// Row 7.
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

// Row 8: what happens is the library's; the test compares it.
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

// Row 9: Weft's engines only; libraries are free to do without the check.
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
    if (rank == 0) {  // the others start later, so that it cannot be complete
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

// Row 10.
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

// Row 11: an error, or what the library does; the test compares.
void started_while_active() {
  OwnWorld comm;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  Sum sum(kCount, comm);
  MPI_Request request;
  sum.initialise(&request);
  MPI_Start(&request);
  // Rank 0 alone: were it allowed, another collective would lack its partners.
  const int code = rank_of(comm) == 0 ? MPI_Start(&request) : MPI_SUCCESS;
  tell("second start: %s", class_of(code) == MPI_ERR_REQUEST ? "refused" : "allowed");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right(), "the first start completes");
  MPI_Request_free(&request);
}

// Row 12.
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

// One of each that a request can be. Active: kSum, kReceive, kStarted, kSend.
enum Which { kNull, kSum, kIdleSend, kReceive, kIdleSum, kStarted, kSend, kWhich };

// MPICH's own MPI_Waitall never ends where a persistent collective among its requests is inactive,
// and its MPI_Testall fails where one is active.
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

// Each completes everything and returns how often each index was said to be complete.
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

// Row 13.
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

// Row 14.
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
